-- Drops the entries that no window counts any more. They are found by time and not by number: while a new version of the
-- policy is rolled out, the other one may allow more. The last of them stays as the first entry, for its surplus.
-- One script call drops no more than it has time for; a log of which most is to be dropped has all of it.
-- Reads: call, unpack, now, name, head, head_bytes, tail, entries, surplus, base, reach, ttl, budget, pieces
-- Sets: entries, budget, pieces
if budget > ${DROP_BYTES} then
  local horizon, beside = now - reach, -1
  --- @include parts/search.lua
  local copied = (entries - first + 1) * ${ENTRY_BYTES} + ${DROP_BYTES}
  if first > 1 and (copied <= budget or budget == ${BUDGET_BYTES} and first > entries / 2) then
    budget = budget - copied
    -- There is room for the head in front of what is kept.
    call('SET', name, call('GETRANGE', name, (first - 1) * ${ENTRY_BYTES}, -1), 'PX', ttl)
    call('SETRANGE', name, 0, head .. string.rep('\0', ${INTEGER_BYTES}))
    entries, pieces = entries - first + 1, nil
  end
end
