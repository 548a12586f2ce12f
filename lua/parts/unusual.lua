-- Decides as decide.lua does: the call may share an entry or does not weigh 1; or the tally has calls that do not weigh
-- 1, has a time later than now, or is no log.
-- Reads: call, unpack, now, alone, read, name, policy, value, last, from, want, ttl, ttl_at, code, wait, budget
-- Sets: now, value, ttl, entry, code, wait, head, head_bytes, tail, entries, last, weighed, surplus, total, front, budget
ttl = ttl or unpack('>s', policy, ttl_at)
local is_decided, never = last <= now, 1 / 0
local head, head_bytes, cell_bytes, fault = '', 0, 0, nil
local tail, entries, weighed, surplus, total, front
local begun = now
--- @include parts/read.lua
if now > begun then
  -- All requests are answered with one time. The tally needs a later one, so the caller asks this request alone.
  if alone then entry = struct.pack('>${INTEGER}I4', now, 0) else now, fault = begun, ${ASK_AGAIN} end
end
for rule = ${FIRST_RULE}, (is_decided or fault) and -1 or ${LAST_RULE} do
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
end
