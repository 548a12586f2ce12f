-- Removes an entry that was appended to a value that is no log. A value that is longer than any log keeps it, because to copy
-- it would take long.
-- Reads: call, name, bytes
-- Sets: code
code = ${PLAIN_UNREADABLE}
if bytes <= ${LONGEST_LOG_BYTES} then
  call('SET', name, call('GETRANGE', name, 0, -1 - ${ENTRY_BYTES}), 'KEEPTTL')
end
