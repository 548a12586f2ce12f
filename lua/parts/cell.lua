-- Reads the cell of a rule that is no sliding window, and moves `cell` to the next. A cell is three integers:
--   sliding counter  the start of the slot, its weight, the weight of the slot before
--   fixed window     when it opened, its weight, 0
--   cron             the last hit, the weight since the last tick, 0
--   token bucket     the last hit, the level after it in tokens * span, since when hits count in that level
-- Reads: unpack, head, cell, fault
-- Sets: stamp, amount, before, cell, fault
local stamp, amount, before = 0, 0, 0
if #head > 0 then stamp, amount, before = unpack('>${CELL}', head, cell) end
cell = cell + ${CELL_BYTES}
if amount >= 2 ^ 53 or before >= 2 ^ 53 then
  amount, before = 0, 0
  fault = fault or ${UNREADABLE}
end
