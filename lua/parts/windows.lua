-- Decides a request whose rules are windows, and charges it.
-- Reads: call, unpack, now, alone, read, name, policy, behind, back_RULE, span_RULE, reach, most, weight, ttl, ranges,
-- Reads: entry, slot, apart, budget, RULE
-- Sets: now, reach, most, weight, ttl, ranges, entry, slot, apart, code, wait, value, size, last, budget
--- @include parts/look.lua

if code == ${PLAIN_ADMITTED} then
  if not slot then
    --- @include parts/terms.lua
    entry = struct.pack('>${INTEGER}I4', now, 0)
  end
  local ttl_at = behind + ${TERMS_BYTES}
  if last < apart then
    local renews = last < slot
    if renews and last <= now - reach then
      ttl = ttl or unpack('>s', policy, ttl_at)
      -- A log begins where there is none, or replaces one in which nothing counts any more. A value that is no log is
      -- kept.
      local is_log = last > 0 or size <= ${ENTRY_BYTES}
      if size == ${END_BYTES} then
        local bytes = call('STRLEN', name)
        is_log = is_log and bytes % ${ENTRY_BYTES} == 0 and bytes <= ${LONGEST_LOG_BYTES}
      elseif size > 0 then
        is_log = is_log and unpack('>${INTEGER}', value) == 0
      end
      if is_log then
        call('SET', name, string.rep('\0', ${ENTRY_BYTES}) .. entry, 'PX', ttl)
      else
        code = ${PLAIN_UNREADABLE}
      end
    else
      --- @include parts/append.lua
    end
  else
    local from, want = '-${END_BYTES}', ${END_BYTES}
    --- @include parts/unusual.lua
    if code == ${PLAIN_ADMITTED} then
      --- @include parts/log.lua
    end
  end
elseif last == ${UNKNOWN} then
  code, wait = ${PLAIN_UNREADABLE}, 0
end
