--[[ Take the place of the one call that is tried after a pause, give it back, or open the subject. A probe that lost its place
     to another one, or to a new pause, changes nothing.

  KEYS[1]  the pause; pause.lua has its layout
  ARGV     the protocol version, the name of the probe, for how many microseconds it takes the place: 0 gives it back, and -1
           opens the subject
  Returns  the server's time, and how the pause stood before, as in paused.lua: packed integers, signed. The place was taken if
           this is ${PROBE}. If the subject was opened, 0, as if it had not been paused
  TTL      leaves it as pause.lua has set it
  Version  ${PROTOCOL} ]]

--- @include parts/protocol.lua

--- @include parts/read_pause.lua

local length = ARGV[3] + 0
if length > 0 then
  if left == ${PROBE} then
    call('SETRANGE', name, '${TAKEN_FIRST}', struct.pack('>${INTEGER}', now + length) .. ARGV[2])
  end
elseif left < 0 and call('GETRANGE', name, '${PAUSE_BYTES}', '${PROBE_LAST}') == ARGV[2] then
  if length == 0 then
    call('SETRANGE', name, '${TAKEN_FIRST}', string.rep('\0', ${INTEGER_BYTES}))
  else
    call('UNLINK', name)
    left = 0
  end
end
return struct.pack('>${SIGNED}${SIGNED}', now, left)
