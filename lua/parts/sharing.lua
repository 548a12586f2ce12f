-- Whether a call shares the last entry, whose time is then now. It does in three cases: both calls are of one microsecond;
-- the last call was refunded and weighs nothing any more; or the log is dense, which means that it holds as many counted
-- entries as it may, and both calls are close to each other.
-- Reads: call, unpack, now, name, head_bytes, tail, entries, last, weighed, surplus, reach
-- Sets: shares
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
