-- Forgets what is later than now: it was written before the clock was set back, and would block for too long.
-- Reads: call, unpack, now, name, ttl, cell_bytes, head_bytes, latest
-- Sets: head, tail, hits, last
if latest > now then
  local value = call('GETRANGE', name, 0, -1)
  local bytes, kept = #value, {}
  while bytes > head_bytes and unpack('>${INTEGER}', value, bytes - ${INTEGER_BYTES} + 1) > now do
    bytes = bytes - ${INTEGER_BYTES}
  end
  for cell = 1, cell_bytes, ${CELL_BYTES} do
    local past = unpack('>${INTEGER}', value, cell) <= now
    kept[#kept + 1] = past and string.sub(value, cell, cell + ${CELL_BYTES} - 1) or string.rep('\0', ${CELL_BYTES})
  end
  head = table.concat(kept) .. string.sub(value, cell_bytes + 1, head_bytes)
  tail = string.sub(value, head_bytes + 1, bytes)
  hits = #tail / ${INTEGER_BYTES}
  last = hits > 0 and unpack('>${INTEGER}', tail, #tail - ${INTEGER_BYTES} + 1) or nil
  call('SET', name, head .. tail, 'PX', ttl)
end
