-- Charges the call to every subject.
-- Reads: call, unpack, now, subjects, cost, late, charges, leases, front, budget
-- Sets: cost, name, head, largest, reach, most, ttl, tail, entries, last, weighed, surplus, total, front, budget
for subject = 1, subjects do
  local lease = leases and leases[subject]
  if lease then
    -- Forgets leases that have ended, and leases from before the clock was set back. One call forgets a limited number.
    local name, id, ends, ttl, held = lease[1], lease[2], lease[3], lease[4], lease[5]
    local others = call('ZCOUNT', name, '-inf', '+inf') - held
    if others > 0 then
      local ended = call('ZCOUNT', name, '-inf', now)
      local later = others - ended
      if ended > 0 then call('ZREMRANGEBYRANK', name, 0, math.min(ended, ${LEASES_FORGOTTEN}) - 1) end
      if later > 0 then call('ZREMRANGEBYRANK', name, -math.min(later, ${LEASES_FORGOTTEN}), -1) end
    end
    call('ZADD', name, ends, id)
    -- The TTL is twice the length of a lease, so most calls need not renew it.
    if call('PTTL', name) < ttl / 2 then call('PEXPIRE', name, ttl) end
  elseif lease == nil then
    if charges then
      local charge = charges[subject]
      name, head, largest, reach, most, ttl = charge[1], charge[2], charge[3], charge[4], charge[5], charge[6]
      tail, entries, last, weighed = charge[7], charge[8], charge[9], charge[10]
      surplus, total, front, cost = charge[11], charge[12], nil, charge[13]
    end
    local head_bytes = #head
    if cost == 0 then
      -- The call has used nothing of this unit.
    elseif largest == 0 then
      call('SET', name, head, 'PX', ttl)
    else
      -- A call costs more than every window counts only if all windows count calls: then one unit is enough.
      local weight = math.min(cost, largest)
      if late and total and total + weight >= 2 ^ 32 then
        -- The limits bound what counts, but not what is charged afterwards. Sums have room for less than 2^32. What has
        -- ended is dropped, and takes no room.
        local room
        do
          local horizon, beside = now - reach, -1
          --- @include parts/search.lua
          room = 2 ^ 32 - 1 - weight
        end
        weight = math.min(weight, room)
      end
      if weight > 0 then
        --- @include parts/log.lua
      end
    end
  end
end
