-- What is written most often: a counter that expires. One key; ARGV: the count, and the window in milliseconds.
local calls = redis.call('INCR', KEYS[1])
if calls == 1 then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return calls <= tonumber(ARGV[1]) and 0 or 1
