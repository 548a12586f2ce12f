--[[ Give the leases of one call back, or renew them.

  KEYS[i]  the leases of one subject; parts/leases.lua has their layout
  ARGV     the protocol version, the name of the call's leases, then for each key the length of a lease in microseconds
           and the milliseconds that the key is to live, or 0 and 0 to give the lease back
  Returns  the server's time, a packed integer, signed
  TTL      at least the length of the lease
  Version  7

  Renewing a lease that has ended takes it again, even beyond the limit: its call is still running. Giving back a lease
  that is not there does nothing. If a key holds something else, the reply is an error, and the other leases are changed. ]]

-- parts/protocol.lua
-- Refuses a caller of another version.
-- Reads: nothing
-- Sets: nothing
if ARGV[1] ~= '7' then
  return redis.error_reply('TALLYGATE this script speaks protocol 7, not ' .. tostring(ARGV[1]))
end

local call, read = redis.call, redis.pcall
local id = ARGV[2]
-- parts/clock.lua
-- The server's time.
-- Reads: call
-- Sets: clock, now
local clock = call('TIME')
local now = clock[1] * 1000000 + clock[2]

local failure
for i = 1, #KEYS do
  local name, span, ttl = KEYS[i], ARGV[2 * i + 1] + 0, ARGV[2 * i + 2] + 0
  local answer
  if span == 0 then
    answer = read('ZREM', name, id)
  else
    answer = read('ZADD', name, now + span, id)
  end
  if type(answer) == 'table' then
    failure = answer
  elseif span > 0 then
    -- The key stays as long as the longest of its leases: see parts/charge.lua.
    if call('PTTL', name) < ttl / 2 then call('PEXPIRE', name, ttl) end
  end
end
if failure then return failure end

return struct.pack('>i7', now)
