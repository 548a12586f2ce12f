-- How long the subject is banned. If it is not, `ban` has what parts/ban_count.lua needs to count a denial.
-- Reads: unpack, now, name, head, cell_bytes, denials, within, duration, ttl, banned
-- Sets: banned, ban, fault
if denials > 0 then
  local since, ends, slot = 0, 0, 0
  if #head > 0 then since, ends, slot = unpack('>${BAN}', head, cell_bytes + 1) end
  if slot >= denials or since >= 2 ^ 53 or ends >= 2 ^ 53 then ends, fault = 0, ${UNREADABLE} end
  if since < ends and since <= now + ${STANDSTILL} and now < ends then
    banned = math.max(banned, ends - now)
  else
    ban = { name, head, cell_bytes, denials, within, duration, ttl }
  end
end
