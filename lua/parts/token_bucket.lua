-- A token bucket. Once it is unused, it is like a new one: tokens that have flowed in are lost.
-- Reads: unpack, request, at, never, now, cost, later, report, lapse, count, span, stamp, amount
-- Sets: at, stamp, amount, before, room, lapse, remaining, reset, reset_charged, more
--- @include parts/level.lua
local needed = cost * span
if not unused and initial < cost then
  -- Once the bucket is unused, the call never fits.
  lapse = math.min(lapse, ends - now)
end
if cost > capacity then
  room = never
elseif needed > level then
  room = math.ceil((needed - level) / count)
  -- Nothing flows into an unused bucket, and without calls a bucket becomes unused.
  if unused then
    room = never
  elseif ends - now <= room then
    room = initial >= cost and ends - now or never
  end
end
if report then
  remaining = math.floor(level / span)
  reset = unused and 0 or math.min(math.ceil((full - level) / count), ends - now)
  reset_charged = math.min(math.ceil((full - level + needed) / count), reset_after)
  local taken = not later and remaining >= cost and needed or 0
  local unused_in = taken > 0 and reset_after or unused and 0 or ends - now
  more = math.ceil((span - level + taken) / count)
  if capacity == 0 then
    more = never
  elseif unused_in <= more then
    more = unused_in > 0 and initial > 0 and unused_in or never
  end
end
-- Earlier hits do not matter to a new or a full bucket.
if unused or level == full then before = now end
stamp = now
amount = level - needed
