--[[ Sliding windows on one sorted set: charge all of them, or none.
  KEYS[1]  the hits, scored by their time
  ARGV     a member no other call has, the longest window, then per rule: count, window
  Returns  0 when admitted, else the rule that denies, counted from 1 ]]
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]

for rule = 1, #ARGV / 2 - 1 do
  local count, window = tonumber(ARGV[2 * rule + 1]), tonumber(ARGV[2 * rule + 2])
  if redis.call('ZCOUNT', KEYS[1], now - window + 1, '+inf') >= count then return rule end
end

local longest = tonumber(ARGV[2])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - longest)
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('PEXPIRE', KEYS[1], math.ceil(longest / 1000))
return 0
