--[[ One rule by the generic cell rate algorithm.
  KEYS[1]  the time at which the calls so far have flowed off
  ARGV     the time that one call takes to flow off, the most that may have to flow off
  Returns  0 when admitted, else the microseconds to wait ]]
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local each, most = tonumber(ARGV[1]), tonumber(ARGV[2])

local off = math.max(tonumber(redis.call('GET', KEYS[1]) or 0), now) + each
if off - now > most then return off - now - most end

redis.call('SET', KEYS[1], string.format('%.0f', off), 'PX', math.ceil((off - now) / 1000))
return 0
