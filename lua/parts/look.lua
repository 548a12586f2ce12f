-- Reads the end of the log of windows, and decides by it. In most logs every call weighs 1, so one entry for each rule
-- shows how long to wait.
-- Reads: call, unpack, now, read, name, policy, behind, back_RULE, span_RULE, ranges, RULE
-- Sets: ranges, code, wait, value, size, last
local code, wait = ${PLAIN_ADMITTED}, 0
local value = read('GETRANGE', name, '-${END_BYTES}', '-1')
local size = #value
local last
if size % ${ENTRY_BYTES} > 0 then
  last = ${UNKNOWN}
elseif size > 0 then
  last = unpack('>${INTEGER}', value, size - ${BEFORE_LAST})
else
  last = value.err and ${UNKNOWN} or 0
end

-- Where all calls weigh 1, the time of one entry shows how long to wait for a window. In a long log, this entry may lie
-- before the bytes that were read. If no entry lies `absent` bytes before the end, none lies further back.
if last <= now then
  local absent
  --- @each rule
  if size > back_RULE then
    local due = unpack('>${INTEGER}', value, size - back_RULE) + span_RULE - now
    --- @include parts/due.lua
  elseif size == ${END_BYTES} and (not absent or back_RULE < absent) then
    ranges = ranges or { unpack('>s${EACH ss}', policy, behind + ${TERMS_BYTES}) }
    local bytes = call('GETRANGE', name, ranges[2 * RULE + 2], ranges[2 * RULE + 3])
    -- GETRANGE returns fewer bytes if the range begins before the string.
    if #bytes == ${INTEGER_BYTES} then
      local due = unpack('>${INTEGER}', bytes) + span_RULE - now
      --- @include parts/due.lua
    else
      absent = back_RULE
    end
  end
  --- @end
end
