-- How long the pause in `value` still lasts. For as long again after it, one call at a time is tried: then it is ${PROBE},
-- less the time for which such a probe has the place. 0 after that, or if the clock was set back.
-- Reads: unpack, now, value
-- Sets: since, ends, opens, taken, left
local since, ends, taken = unpack('>${PAUSE}', value)
local opens = ends + ends - since
left = 0
if since <= now + ${STANDSTILL} and now < ends then
  left = ends - now
elseif since <= now and now < opens then
  left = ${PROBE} - math.max(math.min(taken, opens) - now, 0)
end
