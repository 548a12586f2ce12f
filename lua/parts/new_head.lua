-- The head of the tally after the call is charged.
-- Reads: name, subject, cell_bytes, head_bytes, head, next_cells, largest, reach, most, ttl, charges, tail, entries, last,
-- Reads: weighed, surplus, base, total
-- Sets: head, charges
if next_cells then head = table.concat(next_cells) .. string.sub(head, cell_bytes + 1) end
if #head < head_bytes then head = head .. string.rep('\0', head_bytes - #head) end
if charges then
  charges[subject] = { name, head, largest, reach, most, ttl, tail, entries, last, weighed, surplus, base, total }
end
