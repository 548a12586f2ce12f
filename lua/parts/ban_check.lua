-- Rejects the call of a banned subject without asking further rules. Other denials may lead to a ban: `ban` is what
-- parts/ban_count.lua needs.
-- Reads: unpack, now, name, head, cell_bytes, denials, within, duration, ttl
-- Sets: ban, code, wait
if denials > 0 then
  ban = { name, head, cell_bytes, denials, within, duration, ttl }
  local since, ends = 0, 0
  if #head > 0 then since, ends = unpack('>${INTEGER}${INTEGER}', head, cell_bytes + 1) end
  if since <= now and now < ends then
    code, wait, ban = ${BANNED}, ends - now, nil
    break
  end
end
