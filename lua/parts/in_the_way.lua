-- Finds the newest entry that leaves too little room for a call: from this entry on, the log weighs more than `beside`.
-- `hit` is its time, or 0 where there is no such entry. If all calls weigh 1, one read finds it. If the entry is
-- later than the last entry, the value is no log.
-- Reads: call, unpack, never, name, head_bytes, tail, front, entries, last, weighed, surplus, total, beside
-- Sets: hit, fault
hit = 0
if not weighed then
  local back = (beside + 1) * ${ENTRY_BYTES}
  if back <= #tail then
    hit = unpack('>${INTEGER}', tail, #tail - back + 1)
  elseif back < entries * ${ENTRY_BYTES} then
    hit = unpack('>${INTEGER}', call('GETRANGE', name, -back, ${INTEGER_BYTES} - 1 - back))
  end
elseif total > beside then
  local horizon = never
  --- @include parts/search.lua
  hit = time
end
if hit > last then fault = ${UNREADABLE} end
