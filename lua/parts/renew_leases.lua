-- Keeps the leases of a subject as long as the longest of them lasts. The TTL is twice the length of a lease, so most calls need not
-- renew it.
-- Reads: call, name, ttl
-- Sets: nothing
if call('PTTL', name) < ttl / 2 then call('PEXPIRE', name, ttl) end
