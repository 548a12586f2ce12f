-- A token bucket. Levels are tokens * span, so that a microsecond adds exactly `count`.
-- Reads: unpack, request, at, never, now, cost, report, lapse, count, span, stamp, amount
-- Sets: at, stamp, amount, before, room, lapse, remaining, reset, reset_charged
local capacity, initial, reset_after
capacity, initial, reset_after, at = unpack('>${INTEGER}${INTEGER}${INTEGER}', request, at)
local full = capacity * span
local needed = cost * span
local ends = stamp + reset_after
local unused = ends <= now
if unused then
  amount = initial * span
  before = now
elseif amount < full and now - stamp < math.ceil((full - amount) / count) then
  amount = amount + (now - stamp) * count
else
  amount = full
end
if not unused and initial < cost then
  -- What flows in is lost once the bucket is unused: a call that has to wait until then never fits.
  lapse = math.min(lapse, ends - now)
end
if cost > capacity then
  room = never
elseif needed > amount then
  room = math.ceil((needed - amount) / count)
  -- Nothing flows into an unused bucket, and without calls a bucket becomes unused.
  if unused then
    room = never
  elseif ends - now <= room then
    room = initial >= cost and ends - now or never
  end
end
if report then
  remaining = math.floor(amount / span)
  reset = unused and 0 or math.min(math.ceil((full - amount) / count), ends - now)
  reset_charged = math.min(math.ceil((full - amount + needed) / count), reset_after)
end
stamp = now
amount = amount - needed
