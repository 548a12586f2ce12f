-- Begins a ban, and counts denials anew. A ban of no duration is over at once.
-- Reads: now, denials, duration
-- Sets: since, ends, slot, slots
since = now
ends = now + duration
slot = 0
slots = string.rep('\0', denials * ${INTEGER_BYTES})
