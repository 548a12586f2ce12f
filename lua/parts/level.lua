-- The level of a token bucket now. Levels are in tokens * span, so in each microsecond exactly `count` flows in.
-- Reads: unpack, request, at, now, count, span, stamp, amount
-- Sets: capacity, initial, reset_after, at, full, ends, unused, level
local capacity, initial, reset_after
capacity, initial, reset_after, at = unpack('>${INTEGER}${INTEGER}${INTEGER}', request, at)
local full = capacity * span
local ends = stamp + reset_after
local unused = ends <= now
local level
if unused then
  level = initial * span
elseif amount < full and now - stamp < math.ceil((full - amount) / count) then
  level = amount + (now - stamp) * count
else
  level = full
end
