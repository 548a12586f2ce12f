--[[ Add denials of subjects to those that were published before.

  KEYS[1]  the sorted set of one policy and hour: subjects by their denials
  ARGV     the milliseconds that the set is to live, and how many subjects it has at most; then for each subject its
           denials and the subject
  Returns  how many subjects were removed because the set was full: those with the fewest denials

  One call removes a limited number of subjects, which is larger than the number that it adds. ]]

local call = redis.call
local set = KEYS[1]
local kept_ms = ARGV[1]
local most = tonumber(ARGV[2])

for at = 3, #ARGV, 2 do call('ZINCRBY', set, ARGV[at], ARGV[at + 1]) end
call('PEXPIRE', set, kept_ms)
return call('ZREMRANGEBYRANK', set, -most - 1024 - #ARGV, -1 - most)
