-- Takes a lease. Forgets leases that have ended, no more of them than one call has time for.
-- Reads: call, now, lease
-- Sets: nothing
local name, id, ends, ttl = lease[1], lease[2], lease[3], lease[4]
local ended = call('ZCOUNT', name, '-inf', now)
if ended > 0 then call('ZREMRANGEBYRANK', name, 0, math.min(ended, ${LEASES_FORGOTTEN}) - 1) end
call('ZADD', name, ends, id)
--- @include parts/lease_ttl.lua
