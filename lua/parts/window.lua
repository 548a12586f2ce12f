-- A sliding window, or the window of a duplicate. A call fits once the newest hit that leaves too little room for it is
-- as old as the window.
-- Reads: call, unpack, never, now, cost, report, name, head_bytes, tail, hits, last, kind, count, span
-- Sets: room, remaining, reset, reset_charged
local weight = kind == '${DUPLICATE}' and 1 or cost
if weight > count then
  room = never
else
  local nth = count - weight + 1
  local before = #tail - nth * ${INTEGER_BYTES}
  if before >= 0 then
    room = unpack('>${INTEGER}', tail, before + 1) + span - now
  elseif nth <= hits and #tail < hits * ${INTEGER_BYTES} then
    local hit = call('GETRANGE', name, -nth * ${INTEGER_BYTES}, -nth * ${INTEGER_BYTES} + ${INTEGER_BYTES} - 1)
    -- The range is cut short where it begins before the string.
    if #hit == ${INTEGER_BYTES} then room = unpack('>${INTEGER}', hit) + span - now end
  end
end
if report then
  local total = hits < never and hits or call('STRLEN', name) / ${INTEGER_BYTES}
  local log = #tail == total * ${INTEGER_BYTES} and tail
  local horizon = now - span
  --- @include parts/search.lua
  remaining = count - (total - low)
  reset = total > low and last + span - now or 0
  reset_charged = span
end
