-- The fields of one subject in a packed request; its first rule begins at `at`.
--   rules             the number of its rules (1 byte)
--   cells             how many of these rules have a cell (2 bytes): all but sliding windows
--   denials           how many denials lead to a ban (2 bytes); 0 where none do
--   largest, reach    the largest count (4 bytes) and the greatest length of its sliding windows; 0 where there are none
--   most              a tally of more bytes than this is cleaned up (4 bytes)
--   want, from        how many bytes to read from the end of its tally (2 bytes), and where these begin (text, ended by
--                     a zero byte)
--   ttl               the milliseconds that the tally is to live (text, ended by a zero byte)
--   within, duration  only where denials lead to a ban: the time within which they do, and how long the ban lasts
--   cost              only where each subject has one: the weight of the call in the unit of the subject's rules, or
--                     ${LATER} where it is charged afterwards: the call then fits while anything is left
-- Reads: unpack, request, at, units
-- Sets: rules, cells, denials, largest, reach, most, want, from, ttl, within, duration, cost, later, at, cell_bytes, head_bytes
local rules, cells, denials, want, from, within, duration
rules, cells, denials, largest, reach, most, want, from, ttl, at = unpack('>BI2I2I4${INTEGER}I4I2ss', request, at)
local cell_bytes = cells * ${CELL_BYTES}
local head_bytes = cell_bytes
if denials > 0 then
  within, duration, at = unpack('>${INTEGER}${INTEGER}', request, at)
  head_bytes = cell_bytes + ${BAN_BYTES} + denials * ${INTEGER_BYTES}
end
local later = false
if units then
  cost, at = unpack('>${INTEGER}', request, at)
  later = cost == ${LATER}
  if later then cost = 1 end
end
