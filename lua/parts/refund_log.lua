-- Takes weight of the call back from the log, or adds what the call used beyond its cost. That changes the first entry that is
-- not earlier than the call, if it has the time of the call or may be shared with it, and all later sums. Where too many
-- entries are later, a call gives nothing back, and what is added counts with a later call. An entry that weighs nothing any
-- more has the time of the one before.
-- Reads: call, unpack, now, name, head_bytes, entries, cost, used, admitted, largest, reach, writes
-- Sets: writes, changed
if entries > 1 and admitted <= now and now < admitted + reach then
  -- Most refunds come soon after the call.
  local tail = call('GETRANGE', name, '-${NEAR_BYTES}', '-1')
  tail = string.sub(tail, -entries * ${ENTRY_BYTES})
  local surplus, base, pieces = 0, 0, nil
  local horizon, beside = admitted - 1, -1
  --- @include parts/search.lua
  local grain = math.ceil(reach / ${LOG_ENTRIES})
  local is_shared = largest > ${LOG_ENTRIES} and time and math.floor(time / grain) == math.floor(admitted / grain)
  -- No call weighs more than every window counts.
  local taken = math.min(cost, largest) - math.min(used, largest)
  local nearest = math.max(first, entries - 1 - ${REFUND_DISTANCE})
  if (time == admitted or is_shared) and (taken < 0 or nearest == first) then
    first = nearest
    local log = call('GETRANGE', name, head_bytes + (first - 1) * ${ENTRY_BYTES}, -1)
    local mark, rest, before = unpack('>${ENTRY}', log)
    local own_mark, own_rest, sum = unpack('>${ENTRY}', log, ${ENTRY_BYTES} + 1)
    local own = (1 + sum - before) % 2 ^ 32
    if taken < 0 then
      -- A log weighs less than 2^32.
      local _, base = unpack('>${INTEGER}I4', call('GETRANGE', name, head_bytes, head_bytes + ${ENTRY_BYTES} - 1))
      local _, _, last_sum = unpack('>${ENTRY}', log, #log - ${ENTRY_BYTES} + 1)
      local total = (entries - 1 + last_sum - base) % 2 ^ 32
      taken = math.max(taken, total + 1 - 2 ^ 32)
    end
    taken = math.min(taken, own)
    if own > taken then mark, rest = own_mark, own_rest end
    local entries_behind = {}
    for at = ${ENTRY_BYTES} + 1, #log, ${ENTRY_BYTES} do
      if at > ${ENTRY_BYTES} + 1 then mark, rest, sum = unpack('>${ENTRY}', log, at) end
      local entry = struct.pack('>${ENTRY}', mark % 128 + 128, rest, (sum - taken) % 2 ^ 32)
      entries_behind[#entries_behind + 1] = entry
    end
    if taken ~= 0 then
      changed = true
      writes[#writes + 1] = { name, head_bytes + first * ${ENTRY_BYTES}, table.concat(entries_behind) }
    end
  end
end
