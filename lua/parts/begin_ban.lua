-- Begins a ban, and counts denials from 0. A ban whose duration is 0 ends at once.
-- Reads: now, denials, duration
-- Sets: since, ends, slot, slots
since = now
ends = now + duration
slot = 0
slots = string.rep('\0', denials * ${INTEGER_BYTES})
