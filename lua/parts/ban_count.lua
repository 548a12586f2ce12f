-- Counts the denial towards a ban. The slots are a ring: the next one holds the oldest denial.
-- Reads: call, unpack, now, ban
-- Sets: nothing
local name, head, cell_bytes, denials = ban[1], ban[2], ban[3], ban[4]
local within, duration, ttl = ban[5], ban[6], ban[7]
local since, ends, slot, slots = 0, 0, 0, string.rep('\0', denials * ${INTEGER_BYTES})
if #head > 0 then
  since, ends, slot = unpack('>${BAN}', head, cell_bytes + 1)
  slots = string.sub(head, cell_bytes + ${BAN_BYTES} + 1)
end
local after = string.sub(slots, (slot + 1) * ${INTEGER_BYTES} + 1)
slots = string.sub(slots, 1, slot * ${INTEGER_BYTES}) .. struct.pack('>${INTEGER}', now) .. after
slot = (slot + 1) % denials
local oldest = unpack('>${INTEGER}', slots, slot * ${INTEGER_BYTES} + 1)
if oldest > now - within and oldest <= now + ${STANDSTILL} then
  --- @include parts/begin_ban.lua
end
slots = struct.pack('>${BAN}', since, ends, slot) .. slots
if #head > 0 then
  call('SETRANGE', name, cell_bytes, slots)
  call('PEXPIRE', name, ttl)
else
  call('SET', name, string.rep('\0', cell_bytes) .. slots, 'PX', ttl)
end
