-- Lets the leases of a subject live as long as the longest of them. The TTL is that of two leases, so not every call has to
-- renew it.
-- Reads: call, name, ttl
-- Sets: nothing
if call('PTTL', name) < ttl / 2 then call('PEXPIRE', name, ttl) end
