-- A window of a log whose calls all weigh 1: the time of one entry shows how long to wait. In a long log, that entry may lie
-- before what was read. Where no entry lies `absent` bytes before the end, none lies further back.
-- Reads: call, unpack, now, name, policy, behind, back_RULE, span_RULE, ranges, value, size, absent, code, wait, RULE
-- Sets: ranges, absent, code, wait, last
if size > back_RULE then
  local due = unpack('>${INTEGER}', value, size - back_RULE) + span_RULE - now
  --- @include parts/due.lua
elseif size == ${END_BYTES} and (not absent or back_RULE < absent) then
  ranges = ranges or { unpack('>s${EACH ss}', policy, behind + ${TERMS_BYTES}) }
  local bytes = call('GETRANGE', name, ranges[2 * RULE + 2], ranges[2 * RULE + 3])
  -- The range is cut short where it begins before the string.
  if #bytes == ${INTEGER_BYTES} then
    local due = unpack('>${INTEGER}', bytes) + span_RULE - now
    --- @include parts/due.lua
  else
    absent = back_RULE
  end
end
