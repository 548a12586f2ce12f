-- Adds a call of this weight to the log. A log in which nothing counts any more begins anew.
-- Reads: call, unpack, now, name, head, head_bytes, tail, entries, last, weighed, surplus, total, reach, most, ttl,
-- Reads: front, weight, budget
-- Sets: entries, weighed, surplus, budget, front
local is_over = last <= now - reach
local shares = false
if is_over then
  weighed, surplus = false, 0
else
  -- A call shares the last entry, whose time becomes now, in three cases: both calls are of one microsecond; the last
  -- call was refunded and weighs nothing any more; or both calls are close to each other and the log is dense, that is,
  -- it holds as many counted entries as it may.
  local grain = math.ceil(reach / ${LOG_ENTRIES})
  shares = last == now
  if not shares and weighed then
    shares = (1 + surplus - unpack('>I4', tail, #tail - ${ENTRY_BYTES} - 3)) % 2 ^ 32 == 0
  end
  if not shares and last >= now - now % grain and entries > ${LOG_ENTRIES} then
    local from = head_bytes + (entries - ${LOG_ENTRIES}) * ${ENTRY_BYTES}
    local mark, rest = unpack('>BI6', call('GETRANGE', name, from, from + ${INTEGER_BYTES} - 1))
    shares = mark % 128 * 2 ^ 48 + rest > now - reach
  end
end

local sum = surplus + weight - (shares and 0 or 1)
weighed = weighed or shares or weight > 1
local entry
if weighed then
  entry = struct.pack('>${ENTRY}', 128 + math.floor(now / 2 ^ 48), now % 2 ^ 48, sum % 2 ^ 32)
else
  entry = struct.pack('>${INTEGER}I4', now, 0)
end

if is_over then
  call('SET', name, head .. string.rep('\0', ${ENTRY_BYTES}) .. entry, 'PX', ttl)
else
  if total and total + weight >= 2 ^ 32 then
    -- Sums are exact only while they differ by less than 2^32, so entries are dropped now, even beyond the budget.
    local rest = budget
    budget = math.huge
    --- @include parts/clean_up.lua
    budget = rest - entries * ${ENTRY_BYTES}
  end
  if head_bytes > 0 then call('SETRANGE', name, 0, head) end
  local bytes = 0
  if shares then
    call('SETRANGE', name, head_bytes + (entries - 1) * ${ENTRY_BYTES}, entry)
  else
    bytes = call('APPEND', name, entry)
  end
  -- Where there is only a log, the TTL is long enough to be renewed only by the first call of each period.
  local period = reach <= ${LONG_SLACK} and reach or reach / 8
  if head_bytes > 0 or last < now - now % period then call('PEXPIRE', name, ttl) end
  entries = (bytes - head_bytes) / ${ENTRY_BYTES} - 1
  if bytes > 0 and (weighed or bytes > most) and (entries + 1) % ${CLEAN_UP_ENTRIES} == 0 then
    --- @include parts/clean_up.lua
  end
end
