-- Adds the entry of a call to a log in which something counts.
-- Reads: call, unpack, now, name, policy, reach, most, ttl_at, renews, entry, budget
-- Sets: code, budget
local bytes = call('APPEND', name, entry)
if bytes % ${ENTRY_BYTES} > 0 or bytes > ${LONGEST_LOG_BYTES} then
  -- The value is no log. The entry is taken away again, unless the value is longer than any log: to copy it takes
  -- long.
  code = ${PLAIN_UNREADABLE}
  if bytes <= ${LONGEST_LOG_BYTES} then
    call('SET', name, call('GETRANGE', name, 0, -1 - ${ENTRY_BYTES}), 'KEEPTTL')
  end
else
  if renews then call('PEXPIRE', name, (unpack('>s', policy, ttl_at))) end
  if bytes > most and bytes / ${ENTRY_BYTES} % ${CLEAN_UP_ENTRIES} == 0 then
    local ttl = unpack('>s', policy, ttl_at)
    local head, head_bytes, tail, surplus = '', 0, '', 0
    local front, weighed, total
    local entries = bytes / ${ENTRY_BYTES} - 1
    --- @include parts/clean_up.lua
  end
end
