-- How long the pause in `value` still lasts: 0 if it is over, or if the clock was set back since.
-- Reads: unpack, now, value
-- Sets: since, ends, left
local since, ends = unpack('>${PAUSE}', value)
left = since <= now + ${STANDSTILL} and now < ends and ends - now or 0
