-- A sliding window, or the window of a duplicate. A call fits once the newest entry that leaves too little room for it
-- is as old as the window. Only the last entry decides duplicates.
-- Reads: call, unpack, never, now, cost, report, name, head_bytes, tail, entries, last, weighed, surplus, total, kind,
-- Reads: count, span, front
-- Sets: room, remaining, reset, reset_charged, fault
local beside = count - (kind == '${DUPLICATE}' and 1 or cost)
if beside < 0 then
  room = never
else
  local hit = last
  if kind ~= '${DUPLICATE}' then
    --- @include parts/in_the_way.lua
  end
  room = hit + span - now
end
if report then
  local horizon, beside = now - span, -1
  --- @include parts/search.lua
  if time and time > last or not weighed and weight ~= entries - first then fault = ${UNREADABLE} end
  remaining = count - weight
  reset = weight > 0 and last + span - now or 0
  reset_charged = span
end
