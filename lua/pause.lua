--[[ Pause a subject, or ask for its pause. A pause that ends later stays as it is, so that sending this again changes nothing.

  KEYS[1]  the pause: the times when it began, when it ends, and until when a probe has the place (each a packed integer), the
           name of that probe in ${LEASE_NAME_BYTES} bytes, and then a text that says who set it. A pause that prolongs a
           longer one is written as if it had begun so early that it lasts as long
  ARGV     the protocol version, the duration of the pause in microseconds (0 only asks), the longest duration of a pause, the
           text
  Returns  the server's time, and for how long the subject is paused, or how its probe stands, as in paused.lua: packed
           integers, signed; and if it only asks, the text, at most ${SOURCE_BYTES} bytes of it
  TTL      until the pause has been over for as long as it lasts
  Version  ${PROTOCOL} ]]

--- @include parts/protocol.lua

--- @include parts/read_pause.lua

local length = ARGV[2] + 0
if length > 0 then
  local longest = ARGV[3] + 0
  local lasts = math.max(length, math.min(left, longest))
  if lasts ~= left then
    -- For how long one call at a time is tried after it. This gets no shorter if a pause is prolonged.
    local again = lasts
    if left > 0 then
      local since, ends = unpack('>${INTEGER}${INTEGER}', value)
      again = math.max(lasts, math.min(ends - since, longest))
    end
    local free = string.rep('\0', ${LEASE_NAME_BYTES})
    local ttl = math.ceil((lasts + again) / 1000)
    call('SET', name, struct.pack('>${PAUSE}', now + lasts - again, now + lasts, 0) .. free .. ARGV[4], 'PX', ttl)
    left = lasts
  end
end
local source = length == 0 and call('GETRANGE', name, '${SOURCE_FIRST}', '${SOURCE_LAST}') or ''
return struct.pack('>${SIGNED}${SIGNED}', now, left) .. source
