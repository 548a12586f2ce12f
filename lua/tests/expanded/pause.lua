--[[ Pause a subject, or ask for its pause. A pause that ends later stays as it is, so that sending this again changes nothing.

  KEYS[1]  the pause: the times when it was set and when it ends (each a packed integer), and then a text that says who set it
  ARGV     the protocol version, the duration of the pause in microseconds (0 only asks), the text
  Returns  the server's time, and when the subject is paused until: packed integers, signed
  TTL      until the pause is over
  Version  6 ]]

-- parts/protocol.lua
-- Refuses a caller of another version.
-- Reads: nothing
-- Sets: nothing
if ARGV[1] ~= '6' then
  return redis.error_reply('TALLYGATE this script speaks protocol 6, not ' .. tostring(ARGV[1]))
end

local call = redis.call
local unpack = struct.unpack
local name = KEYS[1]
-- parts/clock.lua
-- The server's time.
-- Reads: call
-- Sets: clock, now
local clock = call('TIME')
local now = clock[1] * 1000000 + clock[2]

local longest = now + ARGV[2]
local value = call('GETRANGE', name, '0', '13')
if #value == 14 then
  local left
  -- parts/pause_left.lua
  -- How long the pause in `value` still lasts: 0 if it is over, or if the clock was set back since.
  -- Reads: unpack, now, value
  -- Sets: since, ends, left
  local since, ends = unpack('>I7I7', value)
  left = since <= now + 128000 and now < ends and ends - now or 0
  if left > 0 and ends >= longest then return struct.pack('>i7i7', now, ends) end
elseif value ~= '' then
  return redis.error_reply('TALLYGATE the key of a pause holds something that is no pause: resume its subject')
end
if ARGV[2] ~= '0' then
  call('SET', name, struct.pack('>I7I7', now, longest) .. ARGV[3], 'PX', math.ceil(ARGV[2] / 1000))
end
return struct.pack('>i7i7', now, longest)
