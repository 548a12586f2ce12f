--[[ What windows_alone.lua does first where its subject may be paused: it looks for the pause of its one request.

  KEYS[2]  the pause of the request
  Returns  as paused.lua does
  TTL      writes nothing ]]

do
  -- Most often there is none, and a number takes less work than a text.
  if call('STRLEN', KEYS[2]) > 0 then
    local value = call('GETRANGE', KEYS[2], '0', '${PAUSE_LAST}')
    local left = ${NEVER}
    if #value == ${PAUSE_BYTES} then
      --- @include parts/pause_left.lua
    end
    if left ~= 0 then return struct.pack('>${SIGNED}${SIGNED}${SIGNED}', ${PAUSED}, now, left) end
  end
end
