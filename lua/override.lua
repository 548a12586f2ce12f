--[[ Change one of the overrides of a prefix.

  KEYS[1]  the hash of the overrides: their texts by field, and `!version`, which every change renews
  ARGV     the new version, the field to change, its new text or '' to remove it; then a field and a text for each
           override that has expired
  Returns  1 if the field was there, else 0

  An expired override is removed only while its text is the same: another process may have set it again. ]]

local call = redis.call
local hash = KEYS[1]
local version = ARGV[1]
local field = ARGV[2]
local text = ARGV[3]

-- First, as it may be refused: without a new version no process would adopt the change.
call('HSET', hash, '!version', version)
for at = 4, #ARGV, 2 do
  if call('HGET', hash, ARGV[at]) == ARGV[at + 1] then call('HDEL', hash, ARGV[at]) end
end
if text == '' then return call('HDEL', hash, field) end
return 1 - call('HSET', hash, field, text)
