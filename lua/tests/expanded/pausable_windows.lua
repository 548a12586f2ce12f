--[[ Decide requests of the common case, with less work than decide.lua: each has one subject, whose rules are only sliding
  windows and duplicates; it asks for no report, it charges, and its cost fits every rule.

  KEYS[i]  the tally of each request; parts/read.lua has its layout
  ARGV     for each run of requests with equal rules and costs, a string of packed fields:
             back, span  for each rule: how many bytes before the last byte of a log the entry begins that leaves too little
                         room, if all entries weigh 1 (5 bytes); the length of its window
             reach       the greatest length of the windows
             most        a tally of more bytes than this is cleaned up (4 bytes)
             weight      what a call weighs (4 bytes)
             ttl         the milliseconds that a tally is to live (text, ended by a zero byte)
             range       for each rule: where the entry at `back` has its time, if it may be further from the end than
                         374 bytes (two texts, each ended by a zero byte)
             keys        how many requests these are (2 bytes)
             duplicates  how many of the rules are duplicates (1 byte); they go before the others
  Returns  a string of packed fields: the server's time; one byte for each request: 255 when it is admitted,
           254 when its tally cannot be read, 253 when the clock was set back and more has to be
           forgotten than this call has time for: ask again; else the rule that denies it, counted from 0; then for each
           denied request, in the same order, the time until the same call would be admitted
  TTL      as decide.lua sets it

  A packed integer has 7 bytes, big endian, unless said otherwise. The text of the script depends on the number
  of rules: the text between `each rule` and `end`, and in the braces of EACH, is repeated for each rule. There is no version,
  because the caller sends the text of the script for which it packs the fields. ]]

local names, values, call = KEYS, unpack, redis.call
-- If several requests are decided, only the one whose tally cannot be read fails.
local alone, read = false, redis.pcall
local unpack = struct.unpack
-- parts/clock.lua
-- The server's time.
-- Reads: call
-- Sets: clock, now
local clock = call('TIME')
local now = clock[1] * 1000000 + clock[2]
do
  local first = #KEYS - table.remove(ARGV)
  local answer, is_paused = { struct.pack('>i7i7', -5, now) }, false
  for index = first + 1, #KEYS do
    local value = redis.pcall('GETRANGE', KEYS[index], '0', '20')
    KEYS[index] = nil
    local left = value == '' and 0 or -1
    if #value == 21 then
      -- parts/pause_left.lua
      -- How long the pause in `value` still lasts. For as long again after it, one call at a time is tried: then it is -2,
      -- less the time for which such a probe has the place. 0 after that, or if the clock was set back.
      -- Reads: unpack, now, value
      -- Sets: since, ends, opens, taken, left
      local since, ends, taken = unpack('>I7I7I7', value)
      local opens = ends + ends - since
      left = 0
      if since <= now + 128000 and now < ends then
        left = ends - now
      elseif since <= now and now < opens then
        left = -2 - math.max(math.min(taken, opens) - now, 0)
      end
    end
    is_paused = is_paused or left ~= 0
    answer[#answer + 1] = struct.pack('>i7', left)
  end
  if is_paused then return table.concat(answer) end
end
local budget = 811008
local codes, waits = {}, {}
local done = 0

for group = 1, #ARGV do
  local policy = ARGV[group]
  local back_0, span_0, back_1, span_1, behind = unpack('>I5I7I5I7', policy)
  local reach, most, weight, ttl, ranges, entry, slot, apart

  local first = done + 1
  done = done + unpack('>I2', policy, #policy - 2)
  for index = first, done do
    local name = names[index]
    -- parts/windows.lua
    -- Decides a request whose rules are windows by the end of its log, and charges it. In most logs every call weighs 1, so one entry
    -- for each rule shows how long to wait.
    -- Reads: call, unpack, now, alone, read, name, policy, behind, back_RULE, span_RULE, reach, most, weight, ttl, ranges,
    -- Reads: entry, slot, apart, budget, RULE
    -- Sets: now, reach, most, weight, ttl, ranges, entry, slot, apart, code, wait, value, size, last, budget
    local code, wait = 255, 0
    local value = read('GETRANGE', name, '-374', '-1')
    local size = #value
    local last
    if size % 11 > 0 then
      last = 72057594037927936
    elseif size > 0 then
      last = unpack('>I7', value, size - 10)
    else
      last = value.err and 72057594037927936 or 0
    end

    -- Where all calls weigh 1, the time of one entry shows how long to wait for a window. In a long log, this entry may lie
    -- before the bytes that were read. If no entry lies `absent` bytes before the end, none lies further back.
    if last <= now then
      local absent
      if size > back_0 then
        local due = unpack('>I7', value, size - back_0) + span_0 - now
        -- parts/due.lua
        -- The window of a rule is full for `due`. The rule with the longest wait denies the call, unless a duplicate denies it.
        -- No entry of a log is later than now, so if the wait is longer than the window, the value is no log.
        -- Reads: policy, due, span_0, code, wait, 0
        -- Sets: code, wait, last
        if due > wait then
          wait = due
          if code == 255 or code >= string.byte(policy, -1) then code = 0 end
          if due > span_0 then last = 72057594037927936 end
        end
      elseif size == 374 and (not absent or back_0 < absent) then
        ranges = ranges or { unpack('>sssss', policy, behind + 15) }
        local bytes = call('GETRANGE', name, ranges[2 * 0 + 2], ranges[2 * 0 + 3])
        -- GETRANGE returns fewer bytes if the range begins before the string.
        if #bytes == 7 then
          local due = unpack('>I7', bytes) + span_0 - now
          -- parts/due.lua
          -- The window of a rule is full for `due`. The rule with the longest wait denies the call, unless a duplicate denies it.
          -- No entry of a log is later than now, so if the wait is longer than the window, the value is no log.
          -- Reads: policy, due, span_0, code, wait, 0
          -- Sets: code, wait, last
          if due > wait then
            wait = due
            if code == 255 or code >= string.byte(policy, -1) then code = 0 end
            if due > span_0 then last = 72057594037927936 end
          end
        else
          absent = back_0
        end
      end
      if size > back_1 then
        local due = unpack('>I7', value, size - back_1) + span_1 - now
        -- parts/due.lua
        -- The window of a rule is full for `due`. The rule with the longest wait denies the call, unless a duplicate denies it.
        -- No entry of a log is later than now, so if the wait is longer than the window, the value is no log.
        -- Reads: policy, due, span_1, code, wait, 1
        -- Sets: code, wait, last
        if due > wait then
          wait = due
          if code == 255 or code >= string.byte(policy, -1) then code = 1 end
          if due > span_1 then last = 72057594037927936 end
        end
      elseif size == 374 and (not absent or back_1 < absent) then
        ranges = ranges or { unpack('>sssss', policy, behind + 15) }
        local bytes = call('GETRANGE', name, ranges[2 * 1 + 2], ranges[2 * 1 + 3])
        -- GETRANGE returns fewer bytes if the range begins before the string.
        if #bytes == 7 then
          local due = unpack('>I7', bytes) + span_1 - now
          -- parts/due.lua
          -- The window of a rule is full for `due`. The rule with the longest wait denies the call, unless a duplicate denies it.
          -- No entry of a log is later than now, so if the wait is longer than the window, the value is no log.
          -- Reads: policy, due, span_1, code, wait, 1
          -- Sets: code, wait, last
          if due > wait then
            wait = due
            if code == 255 or code >= string.byte(policy, -1) then code = 1 end
            if due > span_1 then last = 72057594037927936 end
          end
        else
          absent = back_1
        end
      end
    end

    if code == 255 then
      if not slot then
        -- Only an admitted call needs these fields. In the period that begins at `slot`, the TTL of a tally is renewed only once.
        -- The call has an entry of its own if the last call is earlier than `apart`.
        reach, most, weight = unpack('>I7I4I4', policy, behind)
        slot = now - now % (reach <= 3600000000 and reach or reach / 8)
        apart = weight == 1 and now - reach / 65536 - 1 or 0
        entry = struct.pack('>I7I4', now, 0)
      end
      local ttl_at = behind + 15
      if last < apart then
        local renews = last < slot
        if renews and last <= now - reach then
          ttl = ttl or unpack('>s', policy, ttl_at)
          -- A log begins where there is none, or replaces one in which nothing counts any more. A value that is no log is
          -- kept.
          local is_log = last > 0 or size <= 11
          if size == 374 then
            local bytes = call('STRLEN', name)
            is_log = is_log and bytes % 11 == 0 and bytes <= 5767168
          elseif size > 0 then
            is_log = is_log and unpack('>I7', value) == 0
          end
          if is_log then
            call('SET', name, string.rep('\0', 11) .. entry, 'PX', ttl)
          else
            code = 254
          end
        else
          -- parts/append.lua
          -- Adds the entry of a call to a log in which something counts.
          -- Reads: call, unpack, now, name, policy, reach, most, ttl_at, renews, entry, budget
          -- Sets: code, budget
          local bytes = call('APPEND', name, entry)
          if bytes % 11 > 0 or bytes > 5767168 then
            -- The value is no log. The entry is taken away again, unless the value is longer than any log: to copy it takes
            -- long.
            code = 254
            if bytes <= 5767168 then
              call('SET', name, call('GETRANGE', name, 0, -1 - 11), 'KEEPTTL')
            end
          else
            if renews then call('PEXPIRE', name, (unpack('>s', policy, ttl_at))) end
            if bytes > most and bytes / 11 % 32 == 0 then
              local ttl = unpack('>s', policy, ttl_at)
              local head, head_bytes, tail, surplus = '', 0, '', 0
              local front, weighed, total
              local entries = bytes / 11 - 1
              -- parts/clean_up.lua
              -- Drops the entries that no window counts any more. They are found by time and not by number: while a new version of
              -- the policy is rolled out, the other version may allow more calls. The last dropped entry becomes the first of the
              -- log, for its surplus. One script call drops what its budget allows, and may exceed it for a log of which it drops
              -- most.
              -- Reads: call, unpack, now, name, head, head_bytes, tail, front, entries, weighed, surplus, total, reach, ttl, budget
              -- Sets: entries, budget, front
              if budget > 32768 then
                local horizon, beside = now - reach, -1
                -- parts/search.lua
                -- Search in a log. `first` is the first entry that is later than `horizon`, or, where `beside` is not negative, the
                -- first after which no more than `beside` counts. `time` is its time, or nil if there is no such entry, and `weight` is
                -- the weight from it on. The entry is sought at the end of the log, and then at its `front`, because entries stop
                -- counting there. In between, weights add up to almost a straight line, so two guesses along that line read a few
                -- entries each. Then single entries halve what is left. The longest log takes at most 23 pieces.
                -- Reads: call, unpack, name, head_bytes, tail, front, entries, surplus, total, horizon, beside
                -- Sets: first, time, weight
                local first, time, weight = entries, nil, total or entries > 0 and entries - 1 or 0
                do
                  -- `low` is the last entry that is known to come before `first`. After `low` the log weighs `weight`, after `first` it
                  -- weighs `below`.
                  local low, below = 0, 0
                  local sums = entries - 1 + surplus
                  local piece, begin, stop = tail, entries - #tail / 11, entries
                  -- Most often the end begins after `first`: one look shows that.
                  local middle = begin > 0 and begin or (entries - entries % 2) / 2
                  for step = 1, 23 do
                    local bottom, top = low, first
                    if begin > low then bottom = begin - 1 end
                    if stop < first then top = stop end
                    for _ = 1, 23 do
                      if top - bottom <= 1 then break end
                      local at = (middle - begin) * 11
                      if beside < 0 then
                        local mark, rest, sum = unpack('>BI6I4', piece, at + 1)
                        if mark % 128 * 2 ^ 48 + rest > horizon then
                          first, top = middle, middle
                        else
                          low, bottom, weight = middle, middle, (sums - middle - sum) % 2 ^ 32
                        end
                      else
                        local after = (sums - middle - unpack('>I4', piece, at + 7 + 1)) % 2 ^ 32
                        if after <= beside then
                          first, top, below = middle, middle, after
                        else
                          low, bottom, weight = middle, middle, after
                        end
                      end
                      middle = bottom + top
                      middle = (middle - middle % 2) / 2
                    end
                    if first - low <= 1 then break end
                    if step == 1 and front then
                      piece, begin, stop = front, 0, 34
                    else
                      begin, stop = low + 1, first
                      if first - low > 32 then
                        local near = 0
                        if beside >= 0 and step <= 3 then
                          middle = low + (weight - beside) / (weight - below) * (first - low)
                          near = 8
                        else
                          middle = (low + first) / 2
                        end
                        middle = middle - middle % 1
                        begin, stop = math.max(begin, middle - near), math.min(stop, middle + near + 1)
                      end
                      local from = head_bytes + begin * 11
                      piece = call('GETRANGE', name, from, head_bytes + stop * 11 - 1)
                    end
                    middle = (begin > low and begin - 1 or low) + (stop < first and stop or first)
                    middle = (middle - middle % 2) / 2
                  end
                  if first < entries then
                    local at = (first - begin) * 11
                    if first < begin or first >= stop then
                      at = head_bytes + first * 11
                      piece, at = call('GETRANGE', name, at, at + 7 - 1), 0
                    end
                    local mark, rest = unpack('>BI6', piece, at + 1)
                    time = mark % 128 * 2 ^ 48 + rest
                  end
                end
                -- The count of a window does not say how many calls it admits if they weigh more than 1. So their log is cleaned up
                -- whenever that drops an eighth of it. Where sums would wrap, whatever has ended has to go.
                local least = weighed and budget < math.huge and entries / 8 or 1
                local copied = (entries - first + 1) * 11 + 32768
                if first > least and (copied <= budget or budget == 811008 and first > entries / 2) then
                  budget = budget - copied
                  -- The offset leaves room for the head in front of the entries that are kept.
                  call('SET', name, call('GETRANGE', name, (first - 1) * 11, -1), 'PX', ttl)
                  call('SETRANGE', name, 0, head .. string.rep('\0', 7))
                  entries, front = entries - first + 1, nil
                end
              end
            end
          end
        end
      else
        local from, want = '-374', 374
        -- parts/unusual.lua
        -- Decides as decide.lua does: the call may share an entry or does not weigh 1; or the tally has calls that do not weigh
        -- 1, has a time later than now, or is no log.
        -- Reads: call, unpack, now, alone, read, name, policy, value, last, from, want, ttl, ttl_at, code, wait, budget
        -- Sets: now, value, ttl, entry, code, wait, head, head_bytes, tail, entries, last, weighed, surplus, total, front, budget
        ttl = ttl or unpack('>s', policy, ttl_at)
        local is_decided, never = last <= now, 1 / 0
        local head, head_bytes, cell_bytes, fault = '', 0, 0, nil
        local tail, entries, weighed, surplus, total, front
        local begun = now
        -- parts/read.lua
        -- Reads a tally with as few commands as possible. A tally is a string in three parts:
        --   the cells  for each rule that is no sliding window, in the order of the rules: see parts/cell.lua
        --   the ban    where denials lead to one: when it began, when it ends, the number of the next slot, and the slots, each
        --              with the time of a denial
        --   the log    the calls that the sliding windows admitted, each with its time and what it weighs
        -- `head` is the cells and the ban. `tail` is the end of the log, in whole entries; the first of them may be needed only
        -- for its surplus. `front` is the beginning of a log that is longer than `tail` and has calls that do not weigh 1.
        -- `entries` is the number of all entries, `last` the time of the last one, and `latest` the latest
        -- time in the tally. A time that is a little later than now becomes the time of this decision. A time that is much
        -- later is forgotten before anything is decided, and the tally is read once more.
        --
        -- If the length or the first bytes of a value are wrong, or a time or a number is out of range, the value is no tally,
        -- and `fault` is set. Every time is below 2^53. Text read as a time is above, because no character is less than a
        -- space. In a long log, only the entries that decide are checked.
        -- Reads: call, unpack, now, alone, read, name, value, want, from, ttl, cell_bytes, head_bytes, budget
        -- Sets: now, value, head, tail, entries, last, latest, weighed, surplus, total, front, budget, fault
        local latest
        for round = 1, 2 do
          head, tail, entries, last, latest, front = '', '', 0, 0, 0, nil
          value = value or read('GETRANGE', name, from, '-1')
          if not alone and value.err or #value > 0 and #value < head_bytes then
            fault = -3
          elseif #value < want then
            if head_bytes > 0 then
              head = string.sub(value, 1, head_bytes)
              tail = string.sub(value, head_bytes + 1)
            else
              tail = value
            end
            entries = #tail / 11
          else
            if head_bytes > 0 then head = call('GETRANGE', name, 0, head_bytes - 1) end
            tail = head_bytes > 0 and string.sub(value, head_bytes + 1) or value
            entries = (call('STRLEN', name) - head_bytes) / 11
          end
          if entries % 1 > 0 or entries > 524288 then
            fault = -3
          elseif #tail > 0 then
            last = unpack('>I7', tail, #tail - 11 + 1)
            local first = #tail == entries * 11 and unpack('>I7', tail) or 0
            if first > 0 or last == 0 and entries > 1 then fault = -3 end
          end
          -- Each entry of a log has two fields:
          --   time     when the call was admitted; its first bit is set if this entry or an earlier one does not weigh 1
          --   surplus  the sum of the weights up to this entry, less 1 for each entry (4 bytes, modulo 2^32)
          -- The first entry is no call: its time is 0, and the sum begins with its surplus. So in a log whose calls all weigh
          -- 1, every surplus is 0. An entry may have the time of the one before it; times never decrease. `weighed` says
          -- whether the last entry has its first bit set. If it has, `surplus` is that of the last entry, and `total`
          -- the weight of all calls.
          weighed = last >= 2 ^ 55
          surplus, total = 0, nil
          if weighed then
            local mark, rest
            mark, rest, surplus = unpack('>BI6I4', tail, #tail - 11 + 1)
            last = mark % 128 * 2 ^ 48 + rest
            if #tail < entries * 11 then
              -- Numbers in text, because turning a number into text takes the server as long as a short read.
              if head_bytes > 0 then
                front = call('GETRANGE', name, head_bytes, head_bytes + 374 - 1)
              else
                front = call('GETRANGE', name, '0', '373')
              end
            end
            local nothing, base = unpack('>I7I4', front or tail)
            total = (entries - 1 + surplus - base) % 2 ^ 32
            -- The bit may be set in text, but text never begins as a log does.
            if nothing > 0 then fault = -3 end
          end
          latest = last
          for cell = 1, #head > 0 and cell_bytes or 0, 21 do
            local stamp = unpack('>I7', head, cell)
            if stamp > latest then latest = stamp end
          end
          if latest >= 2 ^ 53 then fault = -3 end
          if fault then
            -- The tally is not used, so its times do not matter.
          elseif latest > now + 128000 and round == 1 then
            -- Forgets entries that are much later than now: they were written before the clock was set back, and would block
            -- calls for too long. One script call forgets whole tallies, at least one. After a long tally, or once the budget
            -- is spent, the caller asks again.
            if budget <= 32768 then
              fault = -2
            else
              local kept = {}
              for cell = 1, cell_bytes, 21 do
                local past = unpack('>I7', head, cell) <= now
                kept[#kept + 1] = past and string.sub(head, cell, cell + 21 - 1) or string.rep('\0', 21)
              end
              local horizon, beside = now, -1
              -- parts/search.lua
              -- Search in a log. `first` is the first entry that is later than `horizon`, or, where `beside` is not negative, the
              -- first after which no more than `beside` counts. `time` is its time, or nil if there is no such entry, and `weight` is
              -- the weight from it on. The entry is sought at the end of the log, and then at its `front`, because entries stop
              -- counting there. In between, weights add up to almost a straight line, so two guesses along that line read a few
              -- entries each. Then single entries halve what is left. The longest log takes at most 23 pieces.
              -- Reads: call, unpack, name, head_bytes, tail, front, entries, surplus, total, horizon, beside
              -- Sets: first, time, weight
              local first, time, weight = entries, nil, total or entries > 0 and entries - 1 or 0
              do
                -- `low` is the last entry that is known to come before `first`. After `low` the log weighs `weight`, after `first` it
                -- weighs `below`.
                local low, below = 0, 0
                local sums = entries - 1 + surplus
                local piece, begin, stop = tail, entries - #tail / 11, entries
                -- Most often the end begins after `first`: one look shows that.
                local middle = begin > 0 and begin or (entries - entries % 2) / 2
                for step = 1, 23 do
                  local bottom, top = low, first
                  if begin > low then bottom = begin - 1 end
                  if stop < first then top = stop end
                  for _ = 1, 23 do
                    if top - bottom <= 1 then break end
                    local at = (middle - begin) * 11
                    if beside < 0 then
                      local mark, rest, sum = unpack('>BI6I4', piece, at + 1)
                      if mark % 128 * 2 ^ 48 + rest > horizon then
                        first, top = middle, middle
                      else
                        low, bottom, weight = middle, middle, (sums - middle - sum) % 2 ^ 32
                      end
                    else
                      local after = (sums - middle - unpack('>I4', piece, at + 7 + 1)) % 2 ^ 32
                      if after <= beside then
                        first, top, below = middle, middle, after
                      else
                        low, bottom, weight = middle, middle, after
                      end
                    end
                    middle = bottom + top
                    middle = (middle - middle % 2) / 2
                  end
                  if first - low <= 1 then break end
                  if step == 1 and front then
                    piece, begin, stop = front, 0, 34
                  else
                    begin, stop = low + 1, first
                    if first - low > 32 then
                      local near = 0
                      if beside >= 0 and step <= 3 then
                        middle = low + (weight - beside) / (weight - below) * (first - low)
                        near = 8
                      else
                        middle = (low + first) / 2
                      end
                      middle = middle - middle % 1
                      begin, stop = math.max(begin, middle - near), math.min(stop, middle + near + 1)
                    end
                    local from = head_bytes + begin * 11
                    piece = call('GETRANGE', name, from, head_bytes + stop * 11 - 1)
                  end
                  middle = (begin > low and begin - 1 or low) + (stop < first and stop or first)
                  middle = (middle - middle % 2) / 2
                end
                if first < entries then
                  local at = (first - begin) * 11
                  if first < begin or first >= stop then
                    at = head_bytes + first * 11
                    piece, at = call('GETRANGE', name, at, at + 7 - 1), 0
                  end
                  local mark, rest = unpack('>BI6', piece, at + 1)
                  time = mark % 128 * 2 ^ 48 + rest
                end
              end
              local copied = first * 11 + 32768
              if copied > budget and budget < 811008 then
                fault = -2
              else
                budget = budget - copied
                value = call('GETRANGE', name, 0, head_bytes + first * 11 - 1)
                call('SET', name, value, 'PX', ttl)
                if cell_bytes > 0 then call('SETRANGE', name, 0, table.concat(kept)) end
                value = nil
                -- After a long tally, the budget is spent.
                if budget < 811008 / 2 then fault = -2 end
              end
            end
          elseif latest > now + 128000 then
            fault = -3
          elseif latest > now then
            now = latest
          end
          if fault then head, tail, front, entries, last, latest, weighed, total = '', '', nil, 0, 0, 0, false, nil end
          if latest <= now then break end
        end
        if now > begun then
          -- All requests are answered with one time. The tally needs a later one, so the caller asks this request alone.
          if alone then entry = struct.pack('>I7I4', now, 0) else now, fault = begun, -2 end
        end
        for rule = 0, (is_decided or fault) and -1 or 1 do
          local back, span = unpack('>I5I7', policy, 12 * rule + 1)
          local beside, hit, duplicates = (back + 1) / 11 - 1, last, string.byte(policy, -1)
          if rule >= duplicates then
            -- parts/in_the_way.lua
            -- Finds the newest entry that leaves too little room for a call: from this entry on, the log weighs more than `beside`.
            -- `hit` is its time, or 0 where there is no such entry. If all calls weigh 1, one read finds it. If the entry is
            -- later than the last entry, the value is no log.
            -- Reads: call, unpack, never, name, head_bytes, tail, front, entries, last, weighed, surplus, total, beside
            -- Sets: hit, fault
            hit = 0
            if not weighed then
              local back = (beside + 1) * 11
              if back <= #tail then
                hit = unpack('>I7', tail, #tail - back + 1)
              elseif back < entries * 11 then
                hit = unpack('>I7', call('GETRANGE', name, -back, 7 - 1 - back))
              end
            elseif total > beside then
              local horizon = never
              -- parts/search.lua
              -- Search in a log. `first` is the first entry that is later than `horizon`, or, where `beside` is not negative, the
              -- first after which no more than `beside` counts. `time` is its time, or nil if there is no such entry, and `weight` is
              -- the weight from it on. The entry is sought at the end of the log, and then at its `front`, because entries stop
              -- counting there. In between, weights add up to almost a straight line, so two guesses along that line read a few
              -- entries each. Then single entries halve what is left. The longest log takes at most 23 pieces.
              -- Reads: call, unpack, name, head_bytes, tail, front, entries, surplus, total, horizon, beside
              -- Sets: first, time, weight
              local first, time, weight = entries, nil, total or entries > 0 and entries - 1 or 0
              do
                -- `low` is the last entry that is known to come before `first`. After `low` the log weighs `weight`, after `first` it
                -- weighs `below`.
                local low, below = 0, 0
                local sums = entries - 1 + surplus
                local piece, begin, stop = tail, entries - #tail / 11, entries
                -- Most often the end begins after `first`: one look shows that.
                local middle = begin > 0 and begin or (entries - entries % 2) / 2
                for step = 1, 23 do
                  local bottom, top = low, first
                  if begin > low then bottom = begin - 1 end
                  if stop < first then top = stop end
                  for _ = 1, 23 do
                    if top - bottom <= 1 then break end
                    local at = (middle - begin) * 11
                    if beside < 0 then
                      local mark, rest, sum = unpack('>BI6I4', piece, at + 1)
                      if mark % 128 * 2 ^ 48 + rest > horizon then
                        first, top = middle, middle
                      else
                        low, bottom, weight = middle, middle, (sums - middle - sum) % 2 ^ 32
                      end
                    else
                      local after = (sums - middle - unpack('>I4', piece, at + 7 + 1)) % 2 ^ 32
                      if after <= beside then
                        first, top, below = middle, middle, after
                      else
                        low, bottom, weight = middle, middle, after
                      end
                    end
                    middle = bottom + top
                    middle = (middle - middle % 2) / 2
                  end
                  if first - low <= 1 then break end
                  if step == 1 and front then
                    piece, begin, stop = front, 0, 34
                  else
                    begin, stop = low + 1, first
                    if first - low > 32 then
                      local near = 0
                      if beside >= 0 and step <= 3 then
                        middle = low + (weight - beside) / (weight - below) * (first - low)
                        near = 8
                      else
                        middle = (low + first) / 2
                      end
                      middle = middle - middle % 1
                      begin, stop = math.max(begin, middle - near), math.min(stop, middle + near + 1)
                    end
                    local from = head_bytes + begin * 11
                    piece = call('GETRANGE', name, from, head_bytes + stop * 11 - 1)
                  end
                  middle = (begin > low and begin - 1 or low) + (stop < first and stop or first)
                  middle = (middle - middle % 2) / 2
                end
                if first < entries then
                  local at = (first - begin) * 11
                  if first < begin or first >= stop then
                    at = head_bytes + first * 11
                    piece, at = call('GETRANGE', name, at, at + 7 - 1), 0
                  end
                  local mark, rest = unpack('>BI6', piece, at + 1)
                  time = mark % 128 * 2 ^ 48 + rest
                end
              end
              hit = time
            end
            if hit > last then fault = -3 end
          end
          local due = hit + span - now
          if due > wait then
            wait = due
            if code == 255 or code >= duplicates then code = rule end
          end
        end
        if fault then
          code, wait = fault == -2 and 253 or 254, 0
        end
        if code == 255 then
          -- parts/log.lua
          -- Adds a call of this weight to the log. A log in which nothing counts any more begins anew.
          -- Reads: call, unpack, now, name, head, head_bytes, tail, entries, last, weighed, surplus, total, reach, most, ttl,
          -- Reads: front, weight, budget
          -- Sets: entries, weighed, surplus, budget, front
          local is_over = last <= now - reach
          local shares = false
          if is_over then
            weighed, surplus = false, 0
          else
            -- A call shares the last entry, whose time becomes now, in three cases: both calls are of one microsecond; the last
            -- call was refunded and weighs nothing any more; or both calls are close to each other and the log is dense, that is,
            -- it holds as many counted entries as it may.
            local grain = math.ceil(reach / 65536)
            shares = last == now
            if not shares and weighed then
              shares = (1 + surplus - unpack('>I4', tail, #tail - 11 - 3)) % 2 ^ 32 == 0
            end
            if not shares and last >= now - now % grain and entries > 65536 then
              local from = head_bytes + (entries - 65536) * 11
              local mark, rest = unpack('>BI6', call('GETRANGE', name, from, from + 7 - 1))
              shares = mark % 128 * 2 ^ 48 + rest > now - reach
            end
          end

          local sum = surplus + weight - (shares and 0 or 1)
          weighed = weighed or shares or weight > 1
          local entry
          if weighed then
            entry = struct.pack('>BI6I4', 128 + math.floor(now / 2 ^ 48), now % 2 ^ 48, sum % 2 ^ 32)
          else
            entry = struct.pack('>I7I4', now, 0)
          end

          if is_over then
            call('SET', name, head .. string.rep('\0', 11) .. entry, 'PX', ttl)
          else
            if total and total + weight >= 2 ^ 32 then
              -- Sums are exact only while they differ by less than 2^32, so entries are dropped now, even beyond the budget.
              local rest = budget
              budget = math.huge
              -- parts/clean_up.lua
              -- Drops the entries that no window counts any more. They are found by time and not by number: while a new version of
              -- the policy is rolled out, the other version may allow more calls. The last dropped entry becomes the first of the
              -- log, for its surplus. One script call drops what its budget allows, and may exceed it for a log of which it drops
              -- most.
              -- Reads: call, unpack, now, name, head, head_bytes, tail, front, entries, weighed, surplus, total, reach, ttl, budget
              -- Sets: entries, budget, front
              if budget > 32768 then
                local horizon, beside = now - reach, -1
                -- parts/search.lua
                -- Search in a log. `first` is the first entry that is later than `horizon`, or, where `beside` is not negative, the
                -- first after which no more than `beside` counts. `time` is its time, or nil if there is no such entry, and `weight` is
                -- the weight from it on. The entry is sought at the end of the log, and then at its `front`, because entries stop
                -- counting there. In between, weights add up to almost a straight line, so two guesses along that line read a few
                -- entries each. Then single entries halve what is left. The longest log takes at most 23 pieces.
                -- Reads: call, unpack, name, head_bytes, tail, front, entries, surplus, total, horizon, beside
                -- Sets: first, time, weight
                local first, time, weight = entries, nil, total or entries > 0 and entries - 1 or 0
                do
                  -- `low` is the last entry that is known to come before `first`. After `low` the log weighs `weight`, after `first` it
                  -- weighs `below`.
                  local low, below = 0, 0
                  local sums = entries - 1 + surplus
                  local piece, begin, stop = tail, entries - #tail / 11, entries
                  -- Most often the end begins after `first`: one look shows that.
                  local middle = begin > 0 and begin or (entries - entries % 2) / 2
                  for step = 1, 23 do
                    local bottom, top = low, first
                    if begin > low then bottom = begin - 1 end
                    if stop < first then top = stop end
                    for _ = 1, 23 do
                      if top - bottom <= 1 then break end
                      local at = (middle - begin) * 11
                      if beside < 0 then
                        local mark, rest, sum = unpack('>BI6I4', piece, at + 1)
                        if mark % 128 * 2 ^ 48 + rest > horizon then
                          first, top = middle, middle
                        else
                          low, bottom, weight = middle, middle, (sums - middle - sum) % 2 ^ 32
                        end
                      else
                        local after = (sums - middle - unpack('>I4', piece, at + 7 + 1)) % 2 ^ 32
                        if after <= beside then
                          first, top, below = middle, middle, after
                        else
                          low, bottom, weight = middle, middle, after
                        end
                      end
                      middle = bottom + top
                      middle = (middle - middle % 2) / 2
                    end
                    if first - low <= 1 then break end
                    if step == 1 and front then
                      piece, begin, stop = front, 0, 34
                    else
                      begin, stop = low + 1, first
                      if first - low > 32 then
                        local near = 0
                        if beside >= 0 and step <= 3 then
                          middle = low + (weight - beside) / (weight - below) * (first - low)
                          near = 8
                        else
                          middle = (low + first) / 2
                        end
                        middle = middle - middle % 1
                        begin, stop = math.max(begin, middle - near), math.min(stop, middle + near + 1)
                      end
                      local from = head_bytes + begin * 11
                      piece = call('GETRANGE', name, from, head_bytes + stop * 11 - 1)
                    end
                    middle = (begin > low and begin - 1 or low) + (stop < first and stop or first)
                    middle = (middle - middle % 2) / 2
                  end
                  if first < entries then
                    local at = (first - begin) * 11
                    if first < begin or first >= stop then
                      at = head_bytes + first * 11
                      piece, at = call('GETRANGE', name, at, at + 7 - 1), 0
                    end
                    local mark, rest = unpack('>BI6', piece, at + 1)
                    time = mark % 128 * 2 ^ 48 + rest
                  end
                end
                -- The count of a window does not say how many calls it admits if they weigh more than 1. So their log is cleaned up
                -- whenever that drops an eighth of it. Where sums would wrap, whatever has ended has to go.
                local least = weighed and budget < math.huge and entries / 8 or 1
                local copied = (entries - first + 1) * 11 + 32768
                if first > least and (copied <= budget or budget == 811008 and first > entries / 2) then
                  budget = budget - copied
                  -- The offset leaves room for the head in front of the entries that are kept.
                  call('SET', name, call('GETRANGE', name, (first - 1) * 11, -1), 'PX', ttl)
                  call('SETRANGE', name, 0, head .. string.rep('\0', 7))
                  entries, front = entries - first + 1, nil
                end
              end
              budget = rest - entries * 11
            end
            if head_bytes > 0 then call('SETRANGE', name, 0, head) end
            local bytes = 0
            if shares then
              call('SETRANGE', name, head_bytes + (entries - 1) * 11, entry)
            else
              bytes = call('APPEND', name, entry)
            end
            -- Where there is only a log, the TTL is long enough to be renewed only by the first call of each period.
            local period = reach <= 3600000000 and reach or reach / 8
            if head_bytes > 0 or last < now - now % period then call('PEXPIRE', name, ttl) end
            entries = (bytes - head_bytes) / 11 - 1
            if bytes > 0 and (weighed or bytes > most) and (entries + 1) % 32 == 0 then
              -- parts/clean_up.lua
              -- Drops the entries that no window counts any more. They are found by time and not by number: while a new version of
              -- the policy is rolled out, the other version may allow more calls. The last dropped entry becomes the first of the
              -- log, for its surplus. One script call drops what its budget allows, and may exceed it for a log of which it drops
              -- most.
              -- Reads: call, unpack, now, name, head, head_bytes, tail, front, entries, weighed, surplus, total, reach, ttl, budget
              -- Sets: entries, budget, front
              if budget > 32768 then
                local horizon, beside = now - reach, -1
                -- parts/search.lua
                -- Search in a log. `first` is the first entry that is later than `horizon`, or, where `beside` is not negative, the
                -- first after which no more than `beside` counts. `time` is its time, or nil if there is no such entry, and `weight` is
                -- the weight from it on. The entry is sought at the end of the log, and then at its `front`, because entries stop
                -- counting there. In between, weights add up to almost a straight line, so two guesses along that line read a few
                -- entries each. Then single entries halve what is left. The longest log takes at most 23 pieces.
                -- Reads: call, unpack, name, head_bytes, tail, front, entries, surplus, total, horizon, beside
                -- Sets: first, time, weight
                local first, time, weight = entries, nil, total or entries > 0 and entries - 1 or 0
                do
                  -- `low` is the last entry that is known to come before `first`. After `low` the log weighs `weight`, after `first` it
                  -- weighs `below`.
                  local low, below = 0, 0
                  local sums = entries - 1 + surplus
                  local piece, begin, stop = tail, entries - #tail / 11, entries
                  -- Most often the end begins after `first`: one look shows that.
                  local middle = begin > 0 and begin or (entries - entries % 2) / 2
                  for step = 1, 23 do
                    local bottom, top = low, first
                    if begin > low then bottom = begin - 1 end
                    if stop < first then top = stop end
                    for _ = 1, 23 do
                      if top - bottom <= 1 then break end
                      local at = (middle - begin) * 11
                      if beside < 0 then
                        local mark, rest, sum = unpack('>BI6I4', piece, at + 1)
                        if mark % 128 * 2 ^ 48 + rest > horizon then
                          first, top = middle, middle
                        else
                          low, bottom, weight = middle, middle, (sums - middle - sum) % 2 ^ 32
                        end
                      else
                        local after = (sums - middle - unpack('>I4', piece, at + 7 + 1)) % 2 ^ 32
                        if after <= beside then
                          first, top, below = middle, middle, after
                        else
                          low, bottom, weight = middle, middle, after
                        end
                      end
                      middle = bottom + top
                      middle = (middle - middle % 2) / 2
                    end
                    if first - low <= 1 then break end
                    if step == 1 and front then
                      piece, begin, stop = front, 0, 34
                    else
                      begin, stop = low + 1, first
                      if first - low > 32 then
                        local near = 0
                        if beside >= 0 and step <= 3 then
                          middle = low + (weight - beside) / (weight - below) * (first - low)
                          near = 8
                        else
                          middle = (low + first) / 2
                        end
                        middle = middle - middle % 1
                        begin, stop = math.max(begin, middle - near), math.min(stop, middle + near + 1)
                      end
                      local from = head_bytes + begin * 11
                      piece = call('GETRANGE', name, from, head_bytes + stop * 11 - 1)
                    end
                    middle = (begin > low and begin - 1 or low) + (stop < first and stop or first)
                    middle = (middle - middle % 2) / 2
                  end
                  if first < entries then
                    local at = (first - begin) * 11
                    if first < begin or first >= stop then
                      at = head_bytes + first * 11
                      piece, at = call('GETRANGE', name, at, at + 7 - 1), 0
                    end
                    local mark, rest = unpack('>BI6', piece, at + 1)
                    time = mark % 128 * 2 ^ 48 + rest
                  end
                end
                -- The count of a window does not say how many calls it admits if they weigh more than 1. So their log is cleaned up
                -- whenever that drops an eighth of it. Where sums would wrap, whatever has ended has to go.
                local least = weighed and budget < math.huge and entries / 8 or 1
                local copied = (entries - first + 1) * 11 + 32768
                if first > least and (copied <= budget or budget == 811008 and first > entries / 2) then
                  budget = budget - copied
                  -- The offset leaves room for the head in front of the entries that are kept.
                  call('SET', name, call('GETRANGE', name, (first - 1) * 11, -1), 'PX', ttl)
                  call('SETRANGE', name, 0, head .. string.rep('\0', 7))
                  entries, front = entries - first + 1, nil
                end
              end
            end
          end
        end
      end
    elseif last == 72057594037927936 then
      code, wait = 254, 0
    end
    codes[index] = code
    if wait > 0 then waits[#waits + 1] = wait end
  end
end

local answer = struct.pack('>I7', now) .. string.char(values(codes))
if #waits > 0 then answer = answer .. struct.pack('>' .. string.rep('I7', #waits), values(waits)) end
return answer
