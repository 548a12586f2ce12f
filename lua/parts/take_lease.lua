-- Takes a lease. Forgets leases that do not count any more: those that have ended, and those from before the clock was set
-- back. One call forgets a limited number of them.
-- Reads: call, now, lease
-- Sets: nothing
local name, id, ends, ttl, held = lease[1], lease[2], lease[3], lease[4], lease[5]
local others = call('ZCOUNT', name, '-inf', '+inf') - held
if others > 0 then
  local ended = call('ZCOUNT', name, '-inf', now)
  local later = others - ended
  if ended > 0 then call('ZREMRANGEBYRANK', name, 0, math.min(ended, ${LEASES_FORGOTTEN}) - 1) end
  if later > 0 then call('ZREMRANGEBYRANK', name, -math.min(later, ${LEASES_FORGOTTEN}), -1) end
end
call('ZADD', name, ends, id)
--- @include parts/lease_ttl.lua
