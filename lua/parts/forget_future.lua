-- Forgets what is later than now: it was written before the clock was set back, and would block calls for too long. One
-- script call forgets whole tallies, at least one. After a long tally, or where the budget is spent, the caller asks again.
-- Reads: call, unpack, now, name, ttl, cell_bytes, head_bytes, head, tail, entries, surplus, base, pieces, budget
-- Sets: value, pieces, budget, fault
if budget <= ${DROP_BYTES} then
  fault = ${ASK_AGAIN}
else
  local kept = {}
  for cell = 1, cell_bytes, ${CELL_BYTES} do
    local past = unpack('>${INTEGER}', head, cell) <= now
    kept[#kept + 1] = past and string.sub(head, cell, cell + ${CELL_BYTES} - 1) or string.rep('\0', ${CELL_BYTES})
  end
  local horizon, beside = now, -1
  --- @include parts/search.lua
  local copied = first * ${ENTRY_BYTES} + ${DROP_BYTES}
  if copied > budget and budget < ${BUDGET_BYTES} then
    fault = ${ASK_AGAIN}
  else
    budget = budget - copied
    value = call('GETRANGE', name, 0, head_bytes + first * ${ENTRY_BYTES} - 1)
    call('SET', name, value, 'PX', ttl)
    if cell_bytes > 0 then call('SETRANGE', name, 0, table.concat(kept)) end
    value = nil
    -- After a long tally, the budget is spent.
    if budget < ${BUDGET_BYTES} / 2 then fault = ${ASK_AGAIN} end
  end
end
