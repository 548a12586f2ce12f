-- Decides a request whose rules are windows, and charges it. In most logs every call weighs 1: then one entry for each rule
-- shows how long to wait.
-- Reads: call, unpack, now, alone, read, name, policy, behind, back_RULE, span_RULE, reach, most, weight, ttl, ranges,
-- Reads: entry, slot, apart, budget, RULE
-- Sets: now, reach, most, weight, ttl, ranges, entry, slot, apart, code, wait, budget
local code, wait = ${PLAIN_ADMITTED}, 0
local value = read('GETRANGE', name, '-${END_BYTES}', '-1')
local size = #value
local last
if size % ${ENTRY_BYTES} > 0 then
  last = ${UNKNOWN}
elseif size > 0 then
  last = unpack('>${INTEGER}', value, size - ${BEFORE_LAST})
else
  last = value.err and ${UNKNOWN} or 0
end

-- Otherwise parts/unusual.lua reads more of the tally.
if last <= now then
  local absent
  --- @each rule
  --- @include parts/plain_window.lua
  --- @end
end

if code == ${PLAIN_ADMITTED} then
  --- @include parts/terms.lua
  if last < apart then
    if last < slot then
      --- @include parts/ttl.lua
    end
    if last < slot and last <= now - reach then
      --- @include parts/begin_log.lua
    else
      local bytes = call('APPEND', name, entry)
      if bytes % ${ENTRY_BYTES} > 0 or bytes > ${LONGEST_LOG_BYTES} then
        --- @include parts/take_back.lua
      else
        if last < slot then call('PEXPIRE', name, ttl) end
        if bytes > most and bytes / ${ENTRY_BYTES} % ${CLEAN_UP_ENTRIES} == 0 then
          --- @include parts/ttl.lua
          local head, head_bytes, tail, surplus, base, pieces = '', 0, value, 0, 0, nil
          local entries = bytes / ${ENTRY_BYTES} - 1
          --- @include parts/clean_up.lua
        end
      end
    end
  else
    --- @include parts/ttl.lua
    --- @include parts/unusual.lua
  end
elseif last == ${UNKNOWN} then
  code, wait = ${PLAIN_UNREADABLE}, 0
end
