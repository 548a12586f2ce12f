-- Charges the call to every subject.
-- Reads: call, unpack, now, subjects, cost, charges, leases, pieces, budget
-- Sets: name, head, largest, reach, most, ttl, tail, entries, last, weighed, surplus, base, total, pieces, budget
for subject = 1, subjects do
  local lease = leases and leases[subject]
  if lease then
    --- @include parts/take_lease.lua
  else
    if charges then
      local charge = charges[subject]
      name, head, largest, reach, most, ttl = charge[1], charge[2], charge[3], charge[4], charge[5], charge[6]
      tail, entries, last, weighed = charge[7], charge[8], charge[9], charge[10]
      surplus, base, total, pieces = charge[11], charge[12], charge[13], nil
    end
    local head_bytes = #head
    if largest == 0 then
      call('SET', name, head, 'PX', ttl)
    else
      -- A call can cost more than every window counts only where all of them count calls: then one unit is enough.
      local weight = math.min(cost, largest)
      --- @include parts/log.lua
    end
  end
end
