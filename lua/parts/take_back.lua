-- Takes an entry back that was added to what is no log. What is longer than any log keeps it, as a copy would take long.
-- Reads: call, name, bytes
-- Sets: code
code = ${PLAIN_UNREADABLE}
if bytes <= ${LONGEST_LOG_BYTES} then
  call('SET', name, call('GETRANGE', name, 0, -1 - ${ENTRY_BYTES}), 'KEEPTTL')
end
