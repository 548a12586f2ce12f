-- Does what decide.lua does, for a call that may share an entry or does not weigh 1, and for a tally with calls that do not
-- weigh 1, with a time later than now, or that is no log.
-- Reads: call, unpack, now, alone, read, name, value, policy, reach, most, weight, ttl, last, wait, code, budget
-- Sets: now, entry, wait, code, last, budget, value
local is_decided, never = last <= now, 1 / 0
local from, want = '-${END_BYTES}', ${END_BYTES}
local head, head_bytes, cell_bytes, fault = '', 0, 0, nil
local tail, entries, weighed, surplus, base, total, pieces
local begun = now
--- @include parts/read.lua
if now > begun then
  -- Several requests are answered with one time, so the caller asks this request alone.
  if alone then entry = struct.pack('>${INTEGER}I4', now, 0) else now, fault = begun, ${ASK_AGAIN} end
end
for rule = 0, (is_decided or fault) and -1 or ${RULES} - 1 do
  local back, span = unpack('>I5${INTEGER}', policy, 12 * rule + 1)
  local beside, hit, duplicates = (back + 1) / ${ENTRY_BYTES} - 1, last, string.byte(policy, -1)
  if rule >= duplicates then
    --- @include parts/in_the_way.lua
  end
  local due = hit + span - now
  if due > wait then
    wait = due
    if code == ${PLAIN_ADMITTED} or code >= duplicates then code = rule end
  end
end
if fault then
  code, wait = fault == ${ASK_AGAIN} and ${PLAIN_ASK_AGAIN} or ${PLAIN_UNREADABLE}, 0
elseif code == ${PLAIN_ADMITTED} then
  --- @include parts/log.lua
end
