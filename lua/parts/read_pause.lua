-- Reads the pause of a subject: see pause_left.lua for how it stands.
-- Reads: nothing
-- Sets: call, unpack, name, now, value, left
local call = redis.call
local unpack = struct.unpack
local name = KEYS[1]
--- @include parts/clock.lua
local value = call('GETRANGE', name, '0', '${PAUSE_LAST}')
local left = 0
if #value == ${PAUSE_BYTES} then
  --- @include parts/pause_left.lua
elseif value ~= '' then
  return redis.error_reply('TALLYGATE the key of a pause holds something that is no pause: resume its subject')
end
