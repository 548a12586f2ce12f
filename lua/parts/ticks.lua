-- The ticks of a cron rule: the last one that is past, and the next one. One is nil if the ticks are not around now.
-- Reads: unpack, request, at, now, span
-- Sets: at, past, coming
local past, coming
for _ = 1, span do
  local tick
  tick, at = unpack('>${INTEGER}', request, at)
  if tick <= now then past = tick elseif not coming then coming = tick end
end
