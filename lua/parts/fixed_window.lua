-- A fixed window. It opens with the first hit after the window before has ended.
-- Reads: never, now, cost, count, span, stamp, amount
-- Sets: stamp, amount, room, remaining, reset, reset_charged, more
if stamp + span <= now then stamp, amount = now, 0 end
local closes = stamp + span - now
if amount + cost > count then room = cost > count and never or closes end
remaining = count - amount
reset = amount > 0 and closes or 0
reset_charged = closes
more = count > 0 and closes or never
amount = amount + cost
