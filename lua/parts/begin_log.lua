-- Starts a log, where there is none or in place of one in which nothing counts any more. A value that is no log is kept.
-- Reads: call, unpack, name, value, size, last, entry, ttl
-- Sets: code
local is_log = last > 0 or size <= ${ENTRY_BYTES}
if size == ${END_BYTES} then
  local bytes = call('STRLEN', name)
  is_log = is_log and bytes % ${ENTRY_BYTES} == 0 and bytes <= ${LONGEST_LOG_BYTES}
elseif size > 0 then
  is_log = is_log and unpack('>${INTEGER}', value) == 0
end
if is_log then
  call('SET', name, string.rep('\0', ${ENTRY_BYTES}) .. entry, 'PX', ttl)
else
  code = ${PLAIN_UNREADABLE}
end
