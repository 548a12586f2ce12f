-- What the calls in a log weigh. Each entry has two fields:
--   time     when the call was admitted; its first bit is set where this entry or one before it weighs other than 1
--   surplus  the sum of the weights up to this entry, without 1 for each of them (4 bytes, modulo 2^32)
-- The first entry is no call: its time is 0, and the surplus counts from its own. So in a log whose calls all weigh 1,
-- every surplus is 0. Entries may share the time of the one before; times never decrease.
-- `weighed` says whether that bit is set for the last entry. `surplus` is the surplus of the last entry, `base` that of the
-- first, and `total` the weight of all calls; they are only set where a call may weigh other than 1.
-- Reads: call, unpack, name, head_bytes, tail, entries, last
-- Sets: last, weighed, surplus, base, total, fault
weighed = last >= 2 ^ 55
surplus, base, total = 0, 0, nil
if weighed then
  local mark, rest
  mark, rest, surplus = unpack('>${ENTRY}', tail, #tail - ${ENTRY_BYTES} + 1)
  last = mark % 128 * 2 ^ 48 + rest
  local first = tail
  if #tail < entries * ${ENTRY_BYTES} then
    first = call('GETRANGE', name, head_bytes, head_bytes + ${ENTRY_BYTES} - 1)
  end
  local nothing
  nothing, base = unpack('>${INTEGER}I4', first)
  total = (entries - 1 + surplus - base) % 2 ^ 32
  -- Text may have the bit set, but never begins like a log.
  if nothing > 0 then fault = ${UNREADABLE} end
end
