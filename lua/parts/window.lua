-- A sliding window, or the window of a duplicate. A call fits once the newest entry that leaves too little room for it
-- is as old as the window. Only the last entry decides duplicates.
-- Reads: call, unpack, never, now, cost, report, name, head_bytes, tail, entries, last, weighed, surplus, total, kind,
-- Reads: count, span, front, later
-- Sets: room, remaining, reset, reset_charged, more, fault
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
  if count == 0 then
    more = never
  elseif kind == '${DUPLICATE}' then
    more = remaining > 0 and span or reset
  else
    local taken = not later and remaining >= cost and cost or 0
    local beside, hit = count - 1 - taken, 0
    if weight == 0 then
      more = span
    elseif remaining <= taken then
      --- @include parts/in_the_way.lua
      more = hit + span - now
    end
  end
end
