-- Reads more fields of a policy, once a call needs them. `slot` is the start of the period in which the TTL of a tally is
-- renewed only once. `entry` is the entry of a call at `now` that weighs 1. The call has an entry of its own if the call
-- before is earlier than `apart`.
-- Reads: unpack, now, policy, behind, slot
-- Sets: reach, most, weight, entry, slot, apart
if not slot then
  reach, most, weight = unpack('>${INTEGER}I4I4', policy, behind)
  entry = struct.pack('>${INTEGER}I4', now, 0)
  slot = now - now % (reach <= ${LONG_SLACK} and reach or reach / 8)
  apart = weight == 1 and now - reach / ${LOG_ENTRIES} - 1 or 0
end
