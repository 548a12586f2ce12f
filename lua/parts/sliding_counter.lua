-- A sliding counter: the weight of this slot, and the share of the slot before that the window still covers. No product
-- exceeds 2^53, because a * b / c is calculated as a * floor(b / c) + floor(a * (b % c) / c).
-- Reads: never, now, cost, report, count, span, stamp, amount, before, fault
-- Sets: stamp, amount, before, room, remaining, reset, reset_charged, fault
if amount > ${COUNTER_COUNT} or before > ${COUNTER_COUNT} then amount, before, fault = 0, 0, fault or ${UNREADABLE} end
local slot = span
local start = now - now % slot
if stamp == start - slot then
  amount, before = 0, amount
elseif stamp ~= start then
  amount, before = 0, 0
end
-- How much of this slot is left. The same length of the slot before still counts.
local left = slot - (now - start)
local free = count - cost - amount
if cost > count then
  room = never
elseif free < 0 then
  -- The call does not fit in this slot. In the next slot the weight of this one fades, until `count - cost` of it is
  -- left.
  local allowed = count - cost
  room = left + slot - (allowed * math.floor(slot / amount) + math.floor(allowed * (slot % amount) / amount))
elseif free < before then
  room = left - (free * math.floor(slot / before) + math.floor(free * (slot % before) / before))
end
if report then
  local faded = math.ceil(before * (left / slot))
  -- The quotient may be off by one: step to the least weight that is enough.
  local whole, part = math.floor(slot / before), slot % before
  if faded < before and left > faded * whole + math.floor(faded * part / before) then
    faded = faded + 1
  elseif faded > 0 and left <= (faded - 1) * whole + math.floor((faded - 1) * part / before) then
    faded = faded - 1
  end
  remaining = count - amount - faded
  reset = amount > 0 and left + slot or before > 0 and left or 0
  reset_charged = left + slot
end
stamp = start
amount = amount + cost
