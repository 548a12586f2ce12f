--[[ Change one of the overrides of a prefix.

  KEYS[1]  the hash of the overrides: their texts by field, and `!version`, which every change renews
  ARGV     the new version, the most overrides, the field to change, its new text or '' to remove it; then a field and a
           text for each override that has expired
  Returns  1 if the field was there, 0 if not, -1 if there is no room for another override

  An expired override is removed only while its text is the same: another process may have set it again. ]]

local call = redis.call
local hash = KEYS[1]
local version = ARGV[1]
local most = ARGV[2] + 0
local field = ARGV[3]
local text = ARGV[4]

local removed = 0
for at = 5, #ARGV, 2 do
  if call('HGET', hash, ARGV[at]) == ARGV[at + 1] then removed = removed + call('HDEL', hash, ARGV[at]) end
end

-- Checked here and not in the process that asks, because several processes may ask at the same time.
local number = call('HLEN', hash) - (call('HGET', hash, '!version') and 1 or 0)
if text ~= '' and number >= most and not call('HGET', hash, field) then
  -- The removed overrides were not in force, but because of them there may have been too many for a process to adopt.
  if removed > 0 then call('HSET', hash, '!version', version) end
  return -1
end

-- The version is written first, because Redis may refuse a write: without a new version no process would adopt the
-- change.
call('HSET', hash, '!version', version)
if text == '' then return call('HDEL', hash, field) end
return 1 - call('HSET', hash, field, text)
