-- Reads a tally, with as few commands as that takes. It is a string of packed integers, in three parts:
--   the cells  for each rule that is no sliding window, in the order of the rules: see parts/cell.lua
--   the ban    where denials lead to one: when it began, when it ends, the number of the next slot, and the slots, each
--              with the time of a denial
--   the log    the time of each unit of weight that the sliding windows admitted, oldest first
-- `head` is the cells and the ban, `tail` the end of the log, `hits` the number of hits in all of it (or never, where
-- `tail` is not all and the number unknown), `last` the time of the last one, `latest` the latest time of all.
-- No time is as late as 2^53. Text is: each of its characters is at least a space.
-- Reads: call, unpack, never, alone, read, name, want, from, largest, cell_bytes, head_bytes
-- Sets: head, tail, hits, last, latest, fault
local tail, hits = '', 0
head = ''
local value = read('GETRANGE', name, from, '-1')
if not alone and value.err or #value % ${INTEGER_BYTES} > 0 or #value > 0 and #value < head_bytes then
  fault = ${UNREADABLE}
elseif head_bytes == 0 then
  tail = value
  hits = #tail < want * ${INTEGER_BYTES} and #tail / ${INTEGER_BYTES} or never
elseif #value < want * ${INTEGER_BYTES} or largest == 0 then
  head = string.sub(value, 1, head_bytes)
  tail = string.sub(value, head_bytes + 1)
  hits = #tail / ${INTEGER_BYTES}
else
  head = call('GETRANGE', name, 0, head_bytes - 1)
  tail = string.sub(value, head_bytes + 1)
  hits = (call('STRLEN', name) - head_bytes) / ${INTEGER_BYTES}
end
last = #tail > 0 and unpack('>${INTEGER}', tail, #tail - ${INTEGER_BYTES} + 1) or nil

local latest = last or 0
for cell = 1, #head > 0 and cell_bytes or 0, ${CELL_BYTES} do
  local stamp = unpack('>${INTEGER}', head, cell)
  if stamp > latest then latest = stamp end
end
if latest >= 2 ^ 53 then
  fault, head, tail, hits, last, latest = ${UNREADABLE}, '', '', 0, nil, 0
end
