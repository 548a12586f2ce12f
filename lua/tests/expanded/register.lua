--[[ Register policies: what they are, for people and tools. No decision depends on it.

  KEYS[1]  the hash of the registry: by the name of a policy as it stands in keys, when it was registered last in seconds
           since 1970, a space, and its description
  ARGV     the most policies, how many seconds a policy stays that nobody registers, where to look for such ones ('0' to
           begin, '' not to look); then the name and the description of each policy
  Returns  where to go on looking ('0' at the end), how many policies were removed, how many found no place
  TTL      as long as a policy stays

  It looks at a part of the policies, so that no call takes long. It never removes a value that does not begin with a time. ]]

local call = redis.call
local hash = KEYS[1]
local most = ARGV[1] + 0
local stay = ARGV[2] + 0
local cursor = ARGV[3]
-- parts/clock.lua
-- The server's time.
-- Reads: call
-- Sets: clock, now
local clock = call('TIME')
local now = clock[1] * 1000000 + clock[2]
local seconds = math.floor(now / 1000000)

local removed = 0
if cursor ~= '' then
  local found = call('HSCAN', hash, cursor, 'COUNT', 64)
  cursor = found[1]
  for at = 1, #found[2], 2 do
    local registered = tonumber(string.match(found[2][at + 1], '^(%d+) '))
    if registered and registered + stay <= seconds then
      removed = removed + call('HDEL', hash, found[2][at])
    end
  end
end

local number = call('HLEN', hash)
local refused = 0
for at = 4, #ARGV, 2 do
  if number < most or call('HGET', hash, ARGV[at]) then
    number = number + call('HSET', hash, ARGV[at], string.format('%.0f ', seconds) .. ARGV[at + 1])
  else
    refused = refused + 1
  end
end
call('PEXPIRE', hash, stay * 1000)

return { cursor, removed, refused }
