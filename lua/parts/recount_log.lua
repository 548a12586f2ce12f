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
    -- At most `most_left` is to be left of the window of this length: `taken` is negative. No window that is as long or longer
    -- comes above its count. The weight goes to the first entry that leaves the window between the reset of the other side and
    -- twice that time, unless it is far from the end.
    taken = 0
    if left_of and now < admitted + left_of then
      local _, base = unpack('>${INTEGER}I4', call('GETRANGE', name, head_bytes, head_bytes + ${ENTRY_BYTES} - 1))
      local _, _, surplus = unpack('>${ENTRY}', tail, #tail - ${ENTRY_BYTES} + 1)
      local front
      local total = (entries - 1 + surplus - base) % 2 ^ 32
      local room = 1 / 0
      for window = 1, #windows do
        local count, span = windows[window][1], windows[window][2]
        if span >= left_of then
          local horizon, beside = now - span, -1
          --- @include parts/search.lua
          room = math.min(room, count - weight - (span == left_of and most_left or 0))
        end
      end
      local begins, last = nil, now + 2 * reset_after_us - left_of
      do
        local horizon, beside = math.min(admitted, now + reset_after_us - left_of) - 1, -1
        --- @include parts/search.lua
        if time and time <= last and first >= entries - 1 - ${REFUND_DISTANCE} then begins = first end
      end
      if begins then first, taken = begins, -math.max(room, 0) end
    end
  end
  local nearest = math.max(first, entries - 1 - ${REFUND_DISTANCE})
  if (time == admitted or is_shared or leaving > 0 and taken < 0) and (taken < 0 or nearest == first) then
    -- The weight changes at this entry, or at a later one if it is too far from the end, and so do the sums of all entries behind.
    first = nearest
    local log
    local back = (entries - first + 1) * ${ENTRY_BYTES}
    if back <= #tail then log = string.sub(tail, -back) else log = call('GETRANGE', name, -back, -1) end
    local mark, rest, before = unpack('>${ENTRY}', log)
    local sum = unpack('>I4', log, ${ENTRY_BYTES} + ${INTEGER_BYTES} + 1)
    local own = (1 + sum - before) % 2 ^ 32
    if taken < 0 then
      -- The weight of a log is below 2^32.
      local _, base = unpack('>${INTEGER}I4', call('GETRANGE', name, head_bytes, head_bytes + ${ENTRY_BYTES} - 1))
      local _, _, last_sum = unpack('>${ENTRY}', log, #log - ${ENTRY_BYTES} + 1)
      local total = (entries - 1 + last_sum - base) % 2 ^ 32
      taken = math.max(taken, total + 1 - 2 ^ 32)
    end
    taken = math.min(taken, own)
    local entries_behind = {}
    for at = ${ENTRY_BYTES} + 1, #log, ${BLOCK_ENTRIES} * ${ENTRY_BYTES} do
      -- Many entries are unpacked at once: it takes a third less time than one by one.
      local together = math.min((#log + 1 - at) / ${ENTRY_BYTES}, ${BLOCK_ENTRIES})
      local format = '>' .. string.rep('${ENTRY}', together)
      local fields = { unpack(format, log, at) }
      for field = 1, 3 * together, 3 do
        fields[field] = fields[field] % 128 + 128
        fields[field + 2] = (fields[field + 2] - taken) % 2 ^ 32
      end
      if at == ${ENTRY_BYTES} + 1 and own <= taken then fields[1], fields[2] = mark % 128 + 128, rest end
      entries_behind[#entries_behind + 1] = struct.pack(format, values(fields, 1, 3 * together))
    end
    if taken ~= 0 then
      changed = true
      writes[#writes + 1] = { name, head_bytes + first * ${ENTRY_BYTES}, table.concat(entries_behind) }
    end
  end
end
