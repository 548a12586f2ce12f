--[[ Pause a subject, or ask for its pause. A pause that ends later stays as it is, so that sending this again changes nothing.

  KEYS[1]  the pause: the times when it was set and when it ends (each a packed integer), and then a text that says who set it
  ARGV     the protocol version, the duration of the pause in microseconds (0 only asks), the text
  Returns  the server's time, and when the subject is paused until: packed integers, signed
  TTL      until the pause is over
  Version  ${PROTOCOL} ]]

--- @include parts/protocol.lua

local call = redis.call
local unpack = struct.unpack
local name = KEYS[1]
--- @include parts/clock.lua

local longest = now + ARGV[2]
local value = call('GETRANGE', name, '0', '${PAUSE_LAST}')
if #value == ${PAUSE_BYTES} then
  local left
  --- @include parts/pause_left.lua
  if left > 0 and ends >= longest then return struct.pack('>${SIGNED}${SIGNED}', now, ends) end
elseif value ~= '' then
  return redis.error_reply('TALLYGATE the key of a pause holds something that is no pause: resume its subject')
end
if ARGV[2] ~= '0' then
  call('SET', name, struct.pack('>${PAUSE}', now, longest) .. ARGV[3], 'PX', math.ceil(ARGV[2] / 1000))
end
return struct.pack('>${SIGNED}${SIGNED}', now, longest)
