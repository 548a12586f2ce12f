-- Decides a request whose rules are windows by the end of its log, and charges it. In most logs every call weighs 1, so one entry
-- for each rule shows how long to wait.
-- Reads: call, unpack, now, alone, read, name, policy, behind, back_RULE, span_RULE, reach, most, weight, ttl, ranges,
-- Reads: entry, slot, apart, budget, RULE
-- Sets: now, reach, most, weight, ttl, ranges, entry, slot, apart, code, wait, value, size, last, budget
local code, wait = ${PLAIN_ADMITTED}, 0
local value = read('GETRANGE', name, '-${END_BYTES}', '-1')
local size = #value
local last
if size % ${ENTRY_BYTES} > 0 then
  last = ${UNKNOWN}
elseif size > 0 then
  last = unpack('>${INTEGER}', value, size - ${BEFORE_LAST})
else
  last = value.err and ${UNKNOWN} or 0
end

-- Where all calls weigh 1, the time of one entry shows how long to wait for a window. In a long log, this entry may lie
-- before the bytes that were read. If no entry lies `absent` bytes before the end, none lies further back.
if last <= now then
  local absent
  --- @each rule
  if size > back_RULE then
    local due = unpack('>${INTEGER}', value, size - back_RULE) + span_RULE - now
    --- @include parts/due.lua
  elseif size == ${END_BYTES} and (not absent or back_RULE < absent) then
    ranges = ranges or { unpack('>s${EACH ss}', policy, behind + ${TERMS_BYTES}) }
    local bytes = call('GETRANGE', name, ranges[2 * RULE + 2], ranges[2 * RULE + 3])
    -- GETRANGE returns fewer bytes if the range begins before the string.
    if #bytes == ${INTEGER_BYTES} then
      local due = unpack('>${INTEGER}', bytes) + span_RULE - now
      --- @include parts/due.lua
    else
      absent = back_RULE
    end
  end
  --- @end
end

if code == ${PLAIN_ADMITTED} then
  if not slot then
    -- Only an admitted call needs these fields. In the period that begins at `slot`, the TTL of a tally is renewed only once.
    -- The call has an entry of its own if the last call is earlier than `apart`.
    reach, most, weight = unpack('>${INTEGER}I4I4', policy, behind)
    slot = now - now % (reach <= ${LONG_SLACK} and reach or reach / 8)
    apart = weight == 1 and now - reach / ${LOG_ENTRIES} - 1 or 0
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
