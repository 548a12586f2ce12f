-- Drops the entries that no window counts any more. They are found by time and not by number: while a new version of
-- the policy is rolled out, the other version may allow more calls. The last dropped entry becomes the first of the
-- log, for its surplus. One script call drops what its budget allows, and may exceed it for a log of which it drops
-- most.
-- Reads: call, unpack, now, name, head, head_bytes, tail, front, entries, weighed, surplus, total, reach, ttl, budget
-- Sets: entries, budget, front
if budget > ${DROP_BYTES} then
  local horizon, beside = now - reach, -1
  --- @include parts/search.lua
  -- The count of a window does not say how many calls it admits if they weigh more than 1. So their log is cleaned up
  -- whenever that drops an eighth of it. Where sums would wrap, whatever has ended has to go.
  local least = weighed and budget < math.huge and entries / 8 or 1
  local copied = (entries - first + 1) * ${ENTRY_BYTES} + ${DROP_BYTES}
  if first > least and (copied <= budget or budget == ${BUDGET_BYTES} and first > entries / 2) then
    budget = budget - copied
    -- The offset leaves room for the head in front of the entries that are kept.
    call('SET', name, call('GETRANGE', name, (first - 1) * ${ENTRY_BYTES}, -1), 'PX', ttl)
    call('SETRANGE', name, 0, head .. string.rep('\0', ${INTEGER_BYTES}))
    entries, front = entries - first + 1, nil
  end
end
