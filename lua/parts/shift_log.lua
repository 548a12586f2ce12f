-- Takes weight from the call at the entry `first` of a log, or at a later one if that is too far from the end, or adds it where
-- `taken` is negative. This changes the sums of all entries behind it.
-- Reads: call, unpack, values, name, head_bytes, entries, tail, nearest, taken, writes
-- Sets: first, taken, changed, writes
first = nearest
local log
local back = (entries - first + 1) * ${ENTRY_BYTES}
if back <= #tail then log = string.sub(tail, -back) else log = call('GETRANGE', name, -back, -1) end
local mark, rest, before = unpack('>${ENTRY}', log)
local sum = unpack('>I4', log, ${ENTRY_BYTES} + ${INTEGER_BYTES} + 1)
local own = (1 + sum - before) % 2 ^ 32
if taken < 0 then
  -- The weight of a log is below 2^32.
  local _, base = unpack('>${INTEGER}I4', call('GETRANGE', name, head_bytes, head_bytes + ${ENTRY_BYTES} - 1))
  local _, _, last_sum = unpack('>${ENTRY}', log, #log - ${ENTRY_BYTES} + 1)
  local total = (entries - 1 + last_sum - base) % 2 ^ 32
  taken = math.max(taken, total + 1 - 2 ^ 32)
end
taken = math.min(taken, own)
local entries_behind = {}
for at = ${ENTRY_BYTES} + 1, #log, ${BLOCK_ENTRIES} * ${ENTRY_BYTES} do
  -- Many entries are unpacked at once: it takes a third less time than one by one.
  local together = math.min((#log + 1 - at) / ${ENTRY_BYTES}, ${BLOCK_ENTRIES})
  local format = '>' .. string.rep('${ENTRY}', together)
  local fields = { unpack(format, log, at) }
  for field = 1, 3 * together, 3 do
    fields[field] = fields[field] % 128 + 128
    fields[field + 2] = (fields[field + 2] - taken) % 2 ^ 32
  end
  if at == ${ENTRY_BYTES} + 1 and own <= taken then fields[1], fields[2] = mark % 128 + 128, rest end
  entries_behind[#entries_behind + 1] = struct.pack(format, values(fields, 1, 3 * together))
end
if taken ~= 0 then
  changed = true
  writes[#writes + 1] = { name, head_bytes + first * ${ENTRY_BYTES}, table.concat(entries_behind) }
end
