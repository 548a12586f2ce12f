-- The ticks of a cron rule: the last that is past, and the first that is coming. One of them is nil where the ticks are
-- not around now.
-- Reads: unpack, request, at, now, span
-- Sets: at, past, coming
local past, coming
for _ = 1, span do
  local tick
  tick, at = unpack('>${INTEGER}', request, at)
  if tick <= now then past = tick elseif not coming then coming = tick end
end
