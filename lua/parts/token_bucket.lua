-- A token bucket. What flows in is lost once the bucket is unused: then it is as new.
-- Reads: unpack, request, at, never, now, cost, report, lapse, count, span, stamp, amount
-- Sets: at, stamp, amount, before, room, lapse, remaining, reset, reset_charged
--- @include parts/level.lua
local needed = cost * span
if not unused and initial < cost then
  -- A call that has to wait until then never fits.
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
end
-- A new bucket and a full one hold the same whatever was taken before.
if unused or level == full then before = now end
stamp = now
amount = level - needed
