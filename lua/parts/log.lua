-- Adds a call of this weight to the log. A log in which nothing counts any more begins anew.
-- Reads: call, unpack, now, name, head, head_bytes, tail, entries, last, weighed, surplus, base, total, reach, most, ttl,
-- Reads: weight, budget, pieces
-- Sets: entries, weighed, surplus, budget, pieces
local is_over = last <= now - reach
local shares = false
if is_over then
  weighed, surplus = false, 0
else
  --- @include parts/sharing.lua
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
    -- Sums are exact only while every difference of two of them is smaller, so entries are dropped now, whatever it takes.
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
  -- Where there is only a log, the first call of each such period renews the TTL; it is long enough for that.
  local period = reach <= ${LONG_SLACK} and reach or reach / 8
  if head_bytes > 0 or last < now - now % period then call('PEXPIRE', name, ttl) end
  entries = (bytes - head_bytes) / ${ENTRY_BYTES} - 1
  if bytes > most and (entries + 1) % ${CLEAN_UP_ENTRIES} == 0 then
    --- @include parts/clean_up.lua
  end
end
