--[[ Decide requests of several subjects with less work than decide.lua: every rule is a sliding window; no request asks for
  a report, each charges, and its cost fits every rule. Every rule of every subject of a request is charged, or none is.

  KEYS[i]  the tally of one subject, in the order of the requests; parts/read.lua has its layout
  ARGV[i]  a string of packed fields for that subject:
             back, span  for each rule: as windows.lua has them
             reach, most, weight, ttl  as windows.lua has them
             want, from  how many bytes to read first from the end of a log: whole entries, at least two (2 bytes); where
                         these begin (text, ended by a zero byte)
             range       for each rule: where the entry at `back` has its time, if it may lie before these bytes (two texts,
                         each ended by a zero byte; else both are empty)
             subjects    how many subjects the request has (1 byte)
             duplicates  0 (1 byte)
  Returns  as windows_alone.lua does for one request, and as windows.lua does for several. The rules of a request are
           counted across its subjects, as if each had the number of rules for which the text of the script is made
  TTL      as decide.lua sets it ]]

local names, policies, values, call = KEYS, ARGV, unpack, redis.call
local struct = struct
local unpack = struct.unpack
--- @include parts/clock.lua
local budget = ${BUDGET_BYTES}
local subjects = string.byte(policies[1], -2)
-- If several requests are decided, only the one whose tally cannot be read fails.
local alone = subjects == #names
local read = alone and call or redis.pcall
local codes, waits = not alone and {}, not alone and {}
local done = 0

-- Each request is decided at most twice.
for _ = 1, 2 * #names do
  local begun_at, entry = now, nil
  local verdict, longest, failed = ${PLAIN_ADMITTED}, 0, nil
  -- The subjects whose TTL is renewed. Most calls renew none, and make no table.
  local renewals
  -- What charging needs of each subject whose log is not only appended to.
  local logs

  for subject = 1, subjects do
    local name, policy = names[done + subject], policies[done + subject]
    local ${EACH back_RULE, span_RULE, }reach, most, weight, ttl, want, from${EACH , from_RULE, to_RULE} =
      unpack('>${EACH I5I7}${INTEGER}I4I4sI2s${EACH ss}', policy)
    local code, wait = ${PLAIN_ADMITTED}, 0
    local value = read('GETRANGE', name, from, '-1')
    local size = #value
    local last = 0
    if size % ${ENTRY_BYTES} > 0 then
      last = ${UNKNOWN}
    elseif size > 0 then
      last = unpack('>${INTEGER}', value, size - ${BEFORE_LAST})
    end
    if last <= now and size > 0 then
      --- @each rule
      if size > back_RULE then
        local due = unpack('>${INTEGER}', value, size - back_RULE) + span_RULE - now
        --- @include parts/due.lua
      elseif from_RULE ~= '' then
        local bytes = call('GETRANGE', name, from_RULE, to_RULE)
        -- GETRANGE returns fewer bytes if the range begins before the string.
        if #bytes == ${INTEGER_BYTES} then
          local due = unpack('>${INTEGER}', bytes) + span_RULE - now
          --- @include parts/due.lua
        end
      end
      --- @end
    end
    if code == ${PLAIN_ADMITTED} then
      if weight == 1 and last < now - reach / ${LOG_ENTRIES} - 1 and last > now - reach then
        if last < now - now % (reach <= ${LONG_SLACK} and reach or reach / 8) then
          renewals = renewals or {}
          renewals[subject] = true
        end
      else
        --- @include parts/unusual.lua
        logs = logs or {}
        logs[subject] = { tail, last, reach, most, ttl, weight, entries, weighed, surplus, total, front }
      end
    elseif last == ${UNKNOWN} then
      code, wait = ${PLAIN_UNREADABLE}, 0
    end
    if wait > longest then
      verdict, longest = ${RULES} * (subject - 1) + code, wait
    elseif wait == 0 and code ~= ${PLAIN_ADMITTED} then
      failed = code
    end
  end

  -- If a tally has moved the time forward, the request begins anew: all subjects are decided as of one time.
  if now == begun_at then
    if failed then
      verdict, longest = failed, 0
    elseif verdict == ${PLAIN_ADMITTED} then
      for subject = 1, subjects do
        if not (logs and logs[subject]) then
          local name, policy = names[done + subject], policies[done + subject]
          local ttl_at, renews = 12 * ${RULES} + 1 + ${TERMS_BYTES}, renewals and renewals[subject]
          local code = verdict
          entry = entry or struct.pack('>${INTEGER}I4', now, 0)
          --- @include parts/append.lua
          if code ~= verdict then
            -- The value is no log, so the request is not charged: the entries before it are taken away again.
            verdict = code
            for other = 1, subject - 1 do
              if not (logs and logs[other]) then
                local name = names[done + other]
                call('SET', name, call('GETRANGE', name, 0, -1 - ${ENTRY_BYTES}), 'KEEPTTL')
              end
            end
            break
          end
        end
      end
      -- What was read whole cannot fail any more.
      for subject = 1, logs and verdict == ${PLAIN_ADMITTED} and subjects or 0 do
        local charge = logs[subject]
        if charge then
          local name, head, head_bytes, tail, last = names[done + subject], '', 0, charge[1], charge[2]
          local reach, most, ttl, weight = charge[3], charge[4], charge[5], charge[6]
          local entries, weighed = charge[7], charge[8]
          local surplus, total, front = charge[9], charge[10], charge[11]
          --- @include parts/log.lua
        end
      end
    end
    if alone then
      if longest > 0 then return struct.pack('>${INTEGER}B${INTEGER}', now, verdict, longest) end
      if verdict == ${PLAIN_ADMITTED} and entry then return entry end
      return struct.pack('>${INTEGER}B', now, verdict)
    end
    codes[#codes + 1] = verdict
    if longest > 0 then waits[#waits + 1] = longest end
    done = done + subjects
    if done == #names then break end
    subjects = string.byte(policies[done + 1], -2)
  end
end

local answer = struct.pack('>${INTEGER}', now) .. string.char(values(codes))
if #waits > 0 then answer = answer .. struct.pack('>' .. string.rep('${INTEGER}', #waits), values(waits)) end
return answer
