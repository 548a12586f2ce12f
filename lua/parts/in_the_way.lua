-- Finds the newest entry that leaves too little room for a call: from this entry on, the log weighs more than `beside`.
-- `hit` is its time, or 0 where there is no such entry. If all calls weigh the same, one read finds it. If the entry is
-- later than the last entry, the value is no log.
-- Reads: call, unpack, never, name, head_bytes, tail, entries, last, weighed, surplus, base, total, beside,
-- Reads: pieces
-- Sets: hit, pieces, fault
hit = 0
if not weighed then
  local back = (beside + 1) * ${ENTRY_BYTES}
  if back <= #tail then
    hit = unpack('>${INTEGER}', tail, #tail - back + 1)
  elseif back < entries * ${ENTRY_BYTES} then
    hit = unpack('>${INTEGER}', call('GETRANGE', name, -back, ${INTEGER_BYTES} - 1 - back))
  end
elseif total > beside then
  local each = (1 + surplus - unpack('>I4', tail, #tail - ${ENTRY_BYTES} - 3)) % 2 ^ 32
  local nth = each > 0 and (beside - beside % each) / each + 1 or entries
  local found = false
  if nth < entries then
    -- Read together with the surplus of the entry before it.
    local piece, at = tail, #tail - nth * ${ENTRY_BYTES} - 4
    if at < 0 then
      at = head_bytes + (entries - nth) * ${ENTRY_BYTES} - 4
      piece, at = call('GETRANGE', name, at, at + ${ENTRY_BYTES} + 3), 0
    end
    local before, mark, rest, sum = unpack('>I4${ENTRY}', piece, at + 1)
    found = (nth + surplus - before) % 2 ^ 32 > beside and (nth - 1 + surplus - sum) % 2 ^ 32 <= beside
    if found then hit = mark % 128 * 2 ^ 48 + rest end
  end
  if not found then
    local horizon = never
    --- @include parts/search.lua
    hit = time
  end
end
if hit > last then fault = ${UNREADABLE} end
