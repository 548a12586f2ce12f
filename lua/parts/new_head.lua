-- The head of the tally once the call is charged.
-- Reads: name, subject, cell_bytes, head_bytes, head, tail, next_cells, largest, reach, ttl, last, charges
-- Sets: head, fresh, charges
fresh = #head + #tail == 0
if next_cells then head = table.concat(next_cells) .. string.sub(head, cell_bytes + 1) end
if #head < head_bytes then head = head .. string.rep('\0', head_bytes - #head) end
if charges then charges[subject] = { name, head, largest, reach, ttl, last, fresh } end
