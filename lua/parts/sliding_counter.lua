-- A sliding counter: the weight of this slot, and the share of the slot before that the window still covers. No product
-- exceeds 2^53, because a * b / c is calculated as a * floor(b / c) + floor(a * (b % c) / c).
-- Reads: never, now, cost, later, report, count, span, stamp, amount, before, fault
-- Sets: stamp, amount, before, room, remaining, reset, reset_charged, more, fault
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
--- @include parts/fading.lua
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
  do
    local amount = amount + (not later and remaining >= cost and cost or 0)
    local cost, room = 1, 0
    --- @include parts/fading.lua
    more = room
  end
end
stamp = start
amount = amount + cost
