-- The log: gives weight of the call back, or adds what the call used beyond its cost. This changes the first entry
-- that is not earlier than the call, if it has the time of the call or may be shared with it, and all later sums. If
-- too many entries are later, the call gives nothing back, and added weight goes to a later entry. An entry that
-- weighs nothing any more has the time of the entry before it.
-- Reads: call, unpack, values, now, admitted, name, head_bytes, entries, largest, reach, cost, used, leaving, most_left,
-- Reads: reset_after_us, windows, left_of, writes
-- Sets: changed, writes
if entries > 1 and admitted <= now and now < admitted + reach then
  -- Most refunds come soon after the call.
  local tail = call('GETRANGE', name, '-${NEAR_BYTES}', '-1')
  if #tail > entries * ${ENTRY_BYTES} then tail = string.sub(tail, -entries * ${ENTRY_BYTES}) end
  local surplus = 0
  local front, total
  local horizon, beside = admitted - 1, -1
  --- @include parts/search.lua
  local grain = math.ceil(reach / ${LOG_ENTRIES})
  local is_shared = largest > ${LOG_ENTRIES} and time and math.floor(time / grain) == math.floor(admitted / grain)
  -- No call weighs more than the largest window counts.
  local taken = math.min(cost, largest) - math.min(used, largest)
  if leaving > 0 then
    --- @include parts/leave_in_log.lua
  end
  local nearest = math.max(first, entries - 1 - ${REFUND_DISTANCE})
  if (time == admitted or is_shared or leaving > 0 and taken < 0) and (taken < 0 or nearest == first) then
    --- @include parts/shift_log.lua
  end
end
