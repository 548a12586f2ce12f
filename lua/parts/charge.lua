-- Charges the call to every subject.
-- Reads: call, unpack, now, subjects, cost, charges
-- Sets: name, head, largest, reach, ttl, last, fresh
local hit = struct.pack('>${INTEGER}', now)
for subject = 1, subjects do
  if charges then
    local charge = charges[subject]
    name, head, largest, reach = charge[1], charge[2], charge[3], charge[4]
    ttl, last, fresh = charge[5], charge[6], charge[7]
  end
  local head_bytes = #head
  -- A call can cost more than every window counts only where all of them count calls: then one unit is enough.
  local weight = cost == 1 and hit or string.rep(hit, math.min(cost, largest))
  if largest == 0 then
    call('SET', name, head, 'PX', ttl)
  elseif fresh and head_bytes > 0 then
    call('SET', name, head .. weight, 'PX', ttl)
  else
    if head_bytes > 0 then call('SETRANGE', name, 0, head) end
    local bytes = call('APPEND', name, weight)
    -- The TTL of a log alone has an eighth to spare, so the first hit of each eighth renews it.
    local eighth = reach / 8
    if head_bytes > 0 or not last or last - last % eighth ~= now - now % eighth then
      call('PEXPIRE', name, ttl)
    end
    --- @include parts/clean_up.lua
  end
end
