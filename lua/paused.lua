--[[ What a script that decides requests does first where their subjects may be paused: it stands behind the clock.

  KEYS     behind those of the script, the pause of each request; pause.lua has its layout
  ARGV     behind those of the script, the number of the requests
  Returns  a string of packed fields if a pause is in the way of any of them: ${PAUSED}, the server's time, and for each request
           how long it is paused: 0 for those that are to be asked again, ${NEVER} where the value is no pause. If one call
           at a time is tried, ${PROBE}, less the time for which such a probe still has the place. Nothing was decided
  TTL      writes nothing

  A packed integer is signed and has ${INTEGER_BYTES} bytes. ]]

do
  local first = #KEYS - table.remove(ARGV)
  local answer, is_paused = { struct.pack('>${SIGNED}${SIGNED}', ${PAUSED}, now) }, false
  for index = first + 1, #KEYS do
    local value = redis.pcall('GETRANGE', KEYS[index], '0', '${PAUSE_LAST}')
    KEYS[index] = nil
    local left = value == '' and 0 or ${NEVER}
    if #value == ${PAUSE_BYTES} then
      --- @include parts/pause_left.lua
    end
    is_paused = is_paused or left ~= 0
    answer[#answer + 1] = struct.pack('>${SIGNED}', left)
  end
  if is_paused then return table.concat(answer) end
end
