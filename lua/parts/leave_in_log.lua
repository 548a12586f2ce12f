-- Adds weight to the log (`taken` is negative), so that at most `most_left` is left of the window of this length. No window that
-- is as long or longer comes above its count. The weight goes to the first entry that leaves the window between the reset of the
-- other side and twice that time, unless it is far from the end.
-- Reads: call, unpack, now, admitted, name, head_bytes, tail, entries, windows, left_of, most_left, reset_after_us
-- Sets: taken, first
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
