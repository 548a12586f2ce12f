-- A window that ends at each tick of a schedule.
-- Reads: unpack, request, at, never, now, cost, fault, count, span, stamp, amount
-- Sets: at, stamp, amount, room, remaining, reset, reset_charged, more, fault
--- @include parts/ticks.lua
if past and coming then
  if stamp < past then amount = 0 end
  if amount + cost > count then room = cost > count and never or coming - now end
  remaining = count - amount
  reset = amount > 0 and coming - now or 0
  reset_charged = coming - now
  more = count > 0 and coming - now or never
  stamp = now
  amount = amount + cost
else
  fault = fault or ${ASK_AGAIN}
end
