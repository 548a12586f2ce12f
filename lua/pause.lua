--[[ Pause a subject, or ask for its pause. A pause that ends later stays as it is, so that sending this again changes nothing.

  KEYS[1]  the pause: the times when it was set, when it ends, and until when a probe has the place (each a packed integer),
           the name of that probe in ${LEASE_NAME_BYTES} bytes, and then a text that says who set it
  ARGV     the protocol version, the duration of the pause in microseconds (0 only asks), the longest duration of a pause, the
           text
  Returns  the server's time, and for how long the subject is paused, or how its probe stands, as in paused.lua: packed
           integers, signed
  TTL      until the pause has been over for as long as it lasted
  Version  ${PROTOCOL} ]]

--- @include parts/protocol.lua

local call = redis.call
local unpack = struct.unpack
local name = KEYS[1]
--- @include parts/clock.lua
--- @include parts/read_pause.lua

local length = ARGV[2] + 0
if length > 0 then
  local lasts = math.max(length, math.min(left, ARGV[3] + 0))
  if lasts ~= left then
    local free = string.rep('\0', ${LEASE_NAME_BYTES})
    local ttl = math.ceil(lasts / 500)
    call('SET', name, struct.pack('>${PAUSE}', now, now + lasts, 0) .. free .. ARGV[4], 'PX', ttl)
    left = lasts
  end
end
return struct.pack('>${SIGNED}${SIGNED}', now, left)
