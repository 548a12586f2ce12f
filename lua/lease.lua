--[[ Give the leases of one call back, or renew them.

  KEYS[i]  the leases of one subject; parts/leases.lua has their layout
  ARGV     the protocol version, the name of the call's leases, then for each key the length of a lease in microseconds
           and the milliseconds that the key is to live, or 0 and 0 to give the lease back
  Returns  the server's time, a packed integer, signed
  TTL      at least the length of the lease
  Version  ${PROTOCOL}

  Renewing a lease that has ended takes it again, even beyond the limit: its call is still running. Giving back a lease
  that is not there does nothing. ]]

--- @include parts/protocol.lua

local call = redis.call
local id = ARGV[2]
--- @include parts/clock.lua

for i = 1, #KEYS do
  local name, span, ttl = KEYS[i], ARGV[2 * i + 1] + 0, ARGV[2 * i + 2] + 0
  if span == 0 then
    call('ZREM', name, id)
  else
    call('ZADD', name, now + span, id)
    --- @include parts/lease_ttl.lua
  end
end

return struct.pack('>${SIGNED}', now)
