-- Decides a request whose rules are windows, and charges it. In most logs every call weighs 1, so one entry for each
-- rule shows how long to wait.
-- Reads: call, unpack, now, alone, read, name, policy, behind, back_RULE, span_RULE, reach, most, weight, ttl, ranges,
-- Reads: entry, slot, apart, budget, RULE
-- Sets: now, reach, most, weight, ttl, ranges, entry, slot, apart, code, wait, budget
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
  -- More fields of the policy, which only an admitted call needs. In the period that begins at `slot`, the TTL of a
  -- tally is renewed only once. `entry` is the entry of a call at `now` that weighs 1. The call has an entry of its own
  -- if the last call is earlier than `apart`.
  if not slot then
    reach, most, weight = unpack('>${INTEGER}I4I4', policy, behind)
    entry = struct.pack('>${INTEGER}I4', now, 0)
    slot = now - now % (reach <= ${LONG_SLACK} and reach or reach / 8)
    apart = weight == 1 and now - reach / ${LOG_ENTRIES} - 1 or 0
  end
  if last < apart then
    if last < slot then
      ttl = ttl or unpack('>s', policy, behind + ${TERMS_BYTES})
    end
    if last < slot and last <= now - reach then
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
      local bytes = call('APPEND', name, entry)
      if bytes % ${ENTRY_BYTES} > 0 or bytes > ${LONGEST_LOG_BYTES} then
        -- The value is no log. The entry is taken away again, unless the value is longer than any log: to copy it takes
        -- long.
        code = ${PLAIN_UNREADABLE}
        if bytes <= ${LONGEST_LOG_BYTES} then
          call('SET', name, call('GETRANGE', name, 0, -1 - ${ENTRY_BYTES}), 'KEEPTTL')
        end
      else
        if last < slot then call('PEXPIRE', name, ttl) end
        if bytes > most and bytes / ${ENTRY_BYTES} % ${CLEAN_UP_ENTRIES} == 0 then
          ttl = ttl or unpack('>s', policy, behind + ${TERMS_BYTES})
          local head, head_bytes, tail, surplus = '', 0, value, 0
          local front, weighed, total
          local entries = bytes / ${ENTRY_BYTES} - 1
          --- @include parts/clean_up.lua
        end
      end
    end
  else
    ttl = ttl or unpack('>s', policy, behind + ${TERMS_BYTES})
    -- As in decide.lua: the call may share an entry or does not weigh 1; or the tally has calls that do not weigh 1,
    -- has a time later than now, or is no log.
    local is_decided, never = last <= now, 1 / 0
    local from, want = '-${END_BYTES}', ${END_BYTES}
    local head, head_bytes, cell_bytes, fault = '', 0, 0, nil
    local tail, entries, weighed, surplus, total, front
    local begun = now
    --- @include parts/read.lua
    if now > begun then
      -- All requests are answered with one time. The tally needs a later one, so the caller asks this request alone.
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
  end
elseif last == ${UNKNOWN} then
  code, wait = ${PLAIN_UNREADABLE}, 0
end
