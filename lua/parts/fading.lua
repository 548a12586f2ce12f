-- How long a call waits for the slots of a sliding counter to fade.
-- Reads: never, cost, count, slot, left, amount, before
-- Sets: room
local allowed = count - cost
local free = allowed - amount
if cost > count then
  room = never
elseif free < 0 then
  -- The call does not fit in this slot. In the next slot the weight of this one fades, until `allowed` of it is left.
  room = left + slot - (allowed * math.floor(slot / amount) + math.floor(allowed * (slot % amount) / amount))
elseif free < before then
  room = left - (free * math.floor(slot / before) + math.floor(free * (slot % before) / before))
end
