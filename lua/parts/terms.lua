-- More fields of the policy, which only an admitted call needs. In the period that begins at `slot`, the TTL of a tally is
-- renewed only once. The call has an entry of its own if the last call is earlier than `apart`.
-- Reads: unpack, now, policy, behind
-- Sets: reach, most, weight, slot, apart
reach, most, weight = unpack('>${INTEGER}I4I4', policy, behind)
slot = now - now % (reach <= ${LONG_SLACK} and reach or reach / 8)
apart = weight == 1 and now - reach / ${LOG_ENTRIES} - 1 or 0
