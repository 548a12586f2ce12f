--[[ Decide requests of several subjects with less work than decide.lua: every rule is a sliding window; no request asks for
  a report, each charges, and its cost fits every rule. Every rule of every subject of a request is charged, or none is.

  KEYS[i]  the tally of one subject, in the order of the requests; parts/read.lua has its layout
  ARGV[i]  for each request, a string of packed fields; its subjects are counted from 0, its rules across all of them:
             back, span  for each rule: as windows.lua has them
             reach, most, weight  for each subject: as windows.lua has them
             near        for each subject: where the bytes begin that are read first from the end of a log: whole entries, at
                         least two (text, ended by a zero byte)
             range       for each rule: where the entry at `back` has its time, if it may lie before these bytes (two texts,
                         each ended by a zero byte; else both are empty)
             ttl         for each subject: as windows.lua has it, with zero bytes behind it (${TTL_BYTES} bytes)
             duplicates  0 (1 byte)
  Returns  as windows_alone.lua does for one request, and as windows.lua does for several
  TTL      as decide.lua sets it

  The text of the script depends on the numbers of subjects and of rules, which are the same for all subjects of all
  requests. The text between `each subject` and `end subject`, and in the braces of EACH_SUBJECT, is repeated for each
  subject: a loop over them and a table of what they need would take longer. ]]

local names, policies, values, call = KEYS, ARGV, unpack, redis.call
local struct = struct
local unpack = struct.unpack
--- @include parts/clock.lua
local budget = ${BUDGET_BYTES}
-- If several requests are decided, only the one whose tally cannot be read fails.
local alone = not policies[2]
local read = alone and call or redis.pcall
local codes, waits
if not alone then codes, waits = {}, {} end
local done = 0

-- Each request is decided at most twice.
for _ = 1, 2 * #policies do
  local begun_at, policy = now, policies[done / ${SUBJECTS} + 1]
  local ${EACH back_RULE, span_RULE, }${EACH_SUBJECT reach_SUBJECT, most_SUBJECT, weight_SUBJECT, }${EACH_SUBJECT near_SUBJECT, }${EACH from_RULE, to_RULE, }ttls =
    unpack('>${EACH I5I7}${EACH_SUBJECT I7I4I4}${EACH_SUBJECT s}${EACH ss}', policy)
  local verdict, longest, failed, entry = ${PLAIN_ADMITTED}, 0, nil, nil

  --- @each subject
  local name_SUBJECT = names[done + SUBJECT + 1]
  -- Whether the TTL is renewed; nil if the log is not only appended to. Then charging needs what follows.
  local renews_SUBJECT, tail_SUBJECT, last_SUBJECT, entries_SUBJECT, weighed_SUBJECT
  local surplus_SUBJECT, total_SUBJECT, front_SUBJECT
  do
    local code, wait, last = ${PLAIN_ADMITTED}, 0, 0
    local value = read('GETRANGE', name_SUBJECT, near_SUBJECT, '-1')
    local size = #value
    if size % ${ENTRY_BYTES} > 0 then
      last = ${UNKNOWN}
    elseif size > 0 then
      last = unpack('>${INTEGER}', value, size - ${BEFORE_LAST})
      if last <= now then
        --- @each rule
        if size > back_RULE then
          local due = unpack('>${INTEGER}', value, size - back_RULE) + span_RULE - now
          --- @include parts/due.lua
        elseif from_RULE ~= '' then
          local bytes = call('GETRANGE', name_SUBJECT, from_RULE, to_RULE)
          -- GETRANGE returns fewer bytes if the range begins before the string.
          if #bytes == ${INTEGER_BYTES} then
            local due = unpack('>${INTEGER}', bytes) + span_RULE - now
            --- @include parts/due.lua
          end
        end
        --- @end
      end
    end
    if code ~= ${PLAIN_ADMITTED} then
      if last == ${UNKNOWN} then code, wait = ${PLAIN_UNREADABLE}, 0 end
    elseif weight_SUBJECT == 1 and last < now - reach_SUBJECT / ${LOG_ENTRIES} - 1 and last > now - reach_SUBJECT then
      renews_SUBJECT = last < now - now % (reach_SUBJECT <= ${LONG_SLACK} and reach_SUBJECT or reach_SUBJECT / 8)
    else
      local name, from, want, ttl, ttl_at = name_SUBJECT, near_SUBJECT, 0 - near_SUBJECT, nil, ttls + ${TTL_BYTES} * SUBJECT
      --- @include parts/unusual.lua
      tail_SUBJECT, last_SUBJECT, entries_SUBJECT, weighed_SUBJECT = tail, last, entries, weighed
      surplus_SUBJECT, total_SUBJECT, front_SUBJECT = surplus, total, front
    end
    if code ~= ${PLAIN_ADMITTED} then
      if wait > longest then
        verdict, longest = code, wait
      elseif wait == 0 then
        failed = code
      end
    end
  end
  --- @end subject

  -- If a tally has moved the time forward, the request begins anew: all subjects are decided as of one time.
  if now == begun_at then
    if failed then
      verdict, longest = failed, 0
    elseif verdict == ${PLAIN_ADMITTED} then
      local appended = ${SUBJECTS}
      --- @each subject
      if renews_SUBJECT ~= nil and appended == ${SUBJECTS} then
        local name, renews, code = name_SUBJECT, renews_SUBJECT, verdict
        local reach, most, ttl_at = reach_SUBJECT, most_SUBJECT, ttls + ${TTL_BYTES} * SUBJECT
        entry = entry or struct.pack('>${INTEGER}I4', now, 0)
        --- @include parts/append.lua
        if code ~= verdict then appended = SUBJECT end
      end
      --- @end subject
      if appended < ${SUBJECTS} then
        -- The value is no log, so the request is not charged: the entries before it are taken away again.
        verdict = ${PLAIN_UNREADABLE}
        local charged = { ${EACH_SUBJECT renews_SUBJECT ~= nil and name_SUBJECT, } }
        for other = 1, appended do
          local name = charged[other]
          if name then call('SET', name, call('GETRANGE', name, 0, -1 - ${ENTRY_BYTES}), 'KEEPTTL') end
        end
      end
      -- What was read whole cannot fail any more.
      --- @each subject
      if entries_SUBJECT and verdict == ${PLAIN_ADMITTED} then
        local name, head, head_bytes, tail, last = name_SUBJECT, '', 0, tail_SUBJECT, last_SUBJECT
        local reach, most, weight = reach_SUBJECT, most_SUBJECT, weight_SUBJECT
        local entries, weighed, surplus, total, front =
          entries_SUBJECT, weighed_SUBJECT, surplus_SUBJECT, total_SUBJECT, front_SUBJECT
        local ttl = unpack('>s', policy, ttls + ${TTL_BYTES} * SUBJECT)
        --- @include parts/log.lua
      end
      --- @end subject
    end
    if alone then
      if longest > 0 then return struct.pack('>${INTEGER}B${INTEGER}', now, verdict, longest) end
      if verdict == ${PLAIN_ADMITTED} and entry then return entry end
      return struct.pack('>${INTEGER}B', now, verdict)
    end
    codes[#codes + 1] = verdict
    if longest > 0 then waits[#waits + 1] = longest end
    done = done + ${SUBJECTS}
    if done == #names then break end
  end
end

local answer = struct.pack('>${INTEGER}', now) .. string.char(values(codes))
if #waits > 0 then answer = answer .. struct.pack('>' .. string.rep('${INTEGER}', #waits), values(waits)) end
return answer
