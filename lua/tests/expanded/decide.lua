--[[ Decide requests. A request is one call: every rule of every subject is charged, or none is.

  KEYS[i]  the tally of one subject, in the order of the requests; parts/read.lua has its layout
  ARGV     the protocol version, then for each request a string of packed fields: its head (parts/request.lua), and for
           each subject the subject's fields (parts/subject.lua) and its rules. The fields of a rule are its kind (1
           byte), its count, its span, and what else the kind needs:
             w  sliding window; the span is its length
             d  duplicate: a sliding window that counts calls, whatever their cost
             c  sliding counter; the span is the length of a slot
             f  fixed window; the span is its length
             k  cron; the span is the number of ticks that follow: times around now, the earliest first
             b  token bucket; `count` tokens flow in per span; its capacity, its initial tokens and
                the time after which an unused bucket is new again (reset_after) follow
             l  concurrency limit, the only rule of its subject; the span is the length of a lease;
                the name of the lease follows (16 bytes); the tally is that of parts/leases.lua
  Returns  a string of packed fields: parts/answer.lua has those of one request, and they follow each other
  TTL      set by every write that needs it: at least until the last hit stops counting, at most twice as long
  Version  7

  A packed integer has 7 bytes, big endian, unless said otherwise. All numbers are below 2^53. Times
  are in microseconds; a point in time is counted from 1970, by the server's clock. The script reads everything,
  decides, and only then writes. A denial writes nothing, but is itself noted where denials lead to a ban.

  The parts are included as text, as src/expand.rs says; the constants are from src/contract.rs. There are no functions
  and no tables of locals: on Redis 6.2.5 and 7.0.15 and on Valkey 9.1.2, creating one function takes 3 to 6 % of the
  instructions of a call, each use 1 %, and a table of six fields 3 to 4 %. ]]

-- parts/protocol.lua
-- Refuses a caller of another version.
-- Reads: nothing
-- Sets: nothing
if ARGV[1] ~= '7' then
  return redis.error_reply('TALLYGATE this script speaks protocol 7, not ' .. tostring(ARGV[1]))
end

local call = redis.call
local unpack = struct.unpack
local never = 1 / 0
-- How many bytes this script call may still copy.
local budget = 811008
-- parts/clock.lua
-- The server's time.
-- Reads: call
-- Sets: clock, now
local clock = call('TIME')
local now = clock[1] * 1000000 + clock[2]
local server_now = now

local alone = not ARGV[3]
-- If several requests are decided, only the one whose tally cannot be read fails.
local read = alone and call or redis.pcall
local answers = not alone and {}
local arg = 2
local key = 0

-- Each request is decided at most twice.
for _ = 1, 2 * #ARGV do
  local request = ARGV[arg]
  if not request then break end
  arg = arg + 1
  -- parts/request.lua
  -- The head of a packed request; the fields of its first subject begin at `at`.
  --   subjects  the number of its subjects (1 byte)
  --   asked     what is asked (1 byte), a sum: 1 to report on every rule, 2 to charge nothing, 4 for a
  --             part of a call, whose wait is combined with those of the others, 8 to charge nothing and to count a
  --             denial towards a ban, because another part is denied, 16 not to count a denial, 32 where each
  --             subject has a cost of its own, 64 to charge the call even beyond the limits
  --   cost      the weight of the call; where each subject has one, the greatest
  -- Reads: unpack, request
  -- Sets: subjects, asked, cost, at, report, peek, part, denial, provisional, charging, units, late
  local subjects, asked, cost, at = unpack('>BBI7', request)
  local report = asked % 2 >= 1
  local peek = asked % 4 >= 2
  local part = asked % 8 >= 4
  local denial = asked % 16 >= 8
  local provisional = asked % 32 >= 16
  local charging = not peek and not denial and cost > 0
  local units = asked >= 32 and asked % 64 >= 32
  local late = asked >= 64
  local begun = now

  -- The decision so far.
  local rule = 0
  local code = -1
  local wait, lapse, banned = 0, never, 0
  local duplicate, fault, ban = false, nil, nil
  -- Whether the wait is only an upper bound.
  local is_bound = false
  local reports = report and {}
  -- For each subject, the values that taking its lease needs.
  local leases

  -- What charging needs of the last subject. `charges` has all subjects if there are several.
  local name, head, largest, reach, most, ttl
  local tail, entries, last, weighed, surplus, total, front
  local charges = subjects > 1 and {}

  for subject = 1, subjects do
    key = key + 1
    name = KEYS[key]
    -- parts/subject.lua
    -- The fields of one subject in a packed request; its first rule begins at `at`.
    --   rules             the number of its rules (1 byte)
    --   cells             how many of these rules have a cell (2 bytes): all but sliding windows
    --   denials           how many denials lead to a ban (2 bytes); 0 where none do
    --   largest, reach    the largest count (4 bytes) and the greatest length of its sliding windows; 0 where there are none
    --   most              a tally of more bytes than this is cleaned up (4 bytes)
    --   want, from        how many bytes to read from the end of its tally (2 bytes), and where these begin (text, ended by
    --                     a zero byte)
    --   ttl               the milliseconds that the tally is to live (text, ended by a zero byte)
    --   within, duration  only where denials lead to a ban: the time within which they do, and how long the ban lasts
    --   cost              only where each subject has one: the weight of the call in the unit of the subject's rules, or
    --                     18014398509481984 where it is charged afterwards: the call then fits while anything is left
    -- Reads: unpack, request, at, units
    -- Sets: rules, cells, denials, largest, reach, most, want, from, ttl, within, duration, cost, later, at, cell_bytes, head_bytes
    local rules, cells, denials, want, from, within, duration
    rules, cells, denials, largest, reach, most, want, from, ttl, at = unpack('>BI2I2I4I7I4I2ss', request, at)
    local cell_bytes = cells * 21
    local head_bytes = cell_bytes
    if denials > 0 then
      within, duration, at = unpack('>I7I7', request, at)
      head_bytes = cell_bytes + 21 + denials * 7
    end
    local later = false
    if units then
      cost, at = unpack('>I7', request, at)
      later = cost == 18014398509481984
      if later then cost = 1 end
    end
    if rules == 1 and string.sub(request, at, at) == 'l' then
      local kind
      local room, remaining, reset, reset_charged, more = 0, 0, 0, 0, 0
      -- parts/leases.lua
      -- A concurrency limit. Its tally is a sorted set: the names of the leases, by the times at which they end. Each call
      -- weighs 1, whatever its cost; a call that costs nothing takes no lease. The wait lasts until enough leases have ended.
      -- It is only a bound: a call may end earlier, or renew its lease. A lease that ends later than any new one was taken
      -- before the clock was set back, and does not count.
      -- Reads: call, unpack, never, now, read, name, subject, request, at, ttl, cost, report, leases, charges
      -- Sets: kind, at, room, remaining, reset, reset_charged, more, is_bound, leases, charges, fault
      local count, span, id
      kind, count, span, id, at = unpack('>c1I7I7c16', request, at)
      local latest = now + 3600128000
      local held = read('ZCOUNT', name, now + 1, latest)
      if type(held) == 'table' then fault, held = -3, 0 end
      if count == 0 then
        room = never
      elseif held >= count then
        -- If the limit was lowered, more leases may have to end than one command passes over.
        local beyond = math.min(held - count, 128)
        local first = call('ZRANGEBYSCORE', name, now + 1, latest, 'WITHSCORES', 'LIMIT', beyond, 1)
        room = first[2] - now
        is_bound = true
      end
      if report then
        remaining = count - held
        local last = held > 0 and call('ZREVRANGEBYSCORE', name, latest, now + 1, 'WITHSCORES', 'LIMIT', 0, 1)
        reset = last and last[2] - now or 0
        reset_charged = span
        more = room
        if remaining == 1 then
          -- The lease of this call may be the first to end.
          local first = held > 0 and call('ZRANGEBYSCORE', name, now + 1, latest, 'WITHSCORES', 'LIMIT', 0, 1)
          more = first and math.min(first[2] - now, span) or span
        end
      end
      leases = leases or {}
      leases[subject] = cost > 0 and { name, id, now + span, ttl, held }
      if charges then charges[subject] = {} end
      -- parts/weigh.lua
      -- Adds a rule to the decision. The call waits for the rule with the longest wait. The code is this rule, or the first
      -- duplicate that denies the call.
      -- Reads: cost, later, report, rule, kind, room, remaining, reset, reset_charged, more, wait, duplicate, reports
      -- Sets: wait, code, duplicate, reports
      if room > 0 then
        if room > wait then
          wait = room
          if not duplicate then code = rule end
        end
        if kind == 'd' and not duplicate then
          code = rule
          duplicate = true
        end
      end
      if report then
        local counts_calls = kind == 'd' or kind == 'l'
        local weight = later and 0 or counts_calls and math.min(cost, 1) or cost
        reports[rule + 1] = { weight, remaining, reset, reset_charged, more }
      end
      rule = rule + 1
    else
      local value
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
      -- parts/ban_check.lua
      -- How long the subject is banned. If it is not, `ban` has what parts/ban_count.lua needs to count a denial.
      -- Reads: unpack, now, name, head, cell_bytes, denials, within, duration, ttl, banned
      -- Sets: banned, ban, fault
      if denials > 0 then
        local since, ends, slot = 0, 0, 0
        if #head > 0 then since, ends, slot = unpack('>I7I7I7', head, cell_bytes + 1) end
        if slot >= denials or since >= 2 ^ 53 or ends >= 2 ^ 53 then ends, fault = 0, -3 end
        if since < ends and since <= now + 128000 and now < ends then
          banned = math.max(banned, ends - now)
        else
          ban = { name, head, cell_bytes, denials, within, duration, ttl }
        end
      end

      local cell = 1
      local next_cells = cells > 0 and {}
      for _ = 1, rules do
        local kind, count, span
        kind, count, span, at = unpack('>c1I7I7', request, at)
        -- Each algorithm sets the time to wait until the call fits. For a report it sets what remains; the time until
        -- the rule is unused, now and once the call is charged; and, if nothing remains now or then, the time until a
        -- cost of 1 fits.
        local room, remaining, reset, reset_charged, more = 0, 0, 0, 0, 0
        if kind == 'w' or kind == 'd' then
          -- parts/window.lua
          -- A sliding window, or the window of a duplicate. A call fits once the newest entry that leaves too little room for it
          -- is as old as the window. Only the last entry decides duplicates.
          -- Reads: call, unpack, never, now, cost, report, name, head_bytes, tail, entries, last, weighed, surplus, total, kind,
          -- Reads: count, span, front, later
          -- Sets: room, remaining, reset, reset_charged, more, fault
          local beside = count - (kind == 'd' and 1 or cost)
          if beside < 0 then
            room = never
          else
            local hit = last
            if kind ~= 'd' then
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
            room = hit + span - now
          end
          if report then
            local horizon, beside = now - span, -1
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
            if time and time > last or not weighed and weight ~= entries - first then fault = -3 end
            remaining = count - weight
            reset = weight > 0 and last + span - now or 0
            reset_charged = span
            if count == 0 then
              more = never
            elseif kind == 'd' then
              more = remaining > 0 and span or reset
            else
              local taken = not later and remaining >= cost and cost or 0
              local beside, hit = count - 1 - taken, 0
              if weight == 0 then
                more = span
              elseif remaining <= taken then
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
                more = hit + span - now
              end
            end
          end
          if late then room = 0 end
        else
          -- parts/cell.lua
          -- Reads the cell of a rule that is no sliding window, and moves `cell` to the next. A cell is three integers:
          --   sliding counter  the start of the slot, its weight, the weight of the slot before
          --   fixed window     when it opened, its weight, 0
          --   cron             the last hit, the weight since the last tick, 0
          --   token bucket     the last hit, the level after it in tokens * span, since when hits count in that level
          -- Reads: unpack, head, cell, fault
          -- Sets: stamp, amount, before, cell, fault
          local stamp, amount, before = 0, 0, 0
          if #head > 0 then stamp, amount, before = unpack('>I7I7I7', head, cell) end
          cell = cell + 21
          if amount >= 2 ^ 53 or before >= 2 ^ 53 then
            amount, before = 0, 0
            fault = fault or -3
          end
          if kind == 'f' then
            -- parts/fixed_window.lua
            -- A fixed window. It opens with the first hit after the window before has ended.
            -- Reads: never, now, cost, count, span, stamp, amount
            -- Sets: stamp, amount, room, remaining, reset, reset_charged, more
            if stamp + span <= now then stamp, amount = now, 0 end
            local closes = stamp + span - now
            if amount + cost > count then room = cost > count and never or closes end
            remaining = count - amount
            reset = amount > 0 and closes or 0
            reset_charged = closes
            more = count > 0 and closes or never
            amount = amount + cost
          elseif kind == 'k' then
            -- parts/cron.lua
            -- A window that ends at each tick of a schedule.
            -- Reads: unpack, request, at, never, now, cost, fault, count, span, stamp, amount
            -- Sets: at, stamp, amount, room, remaining, reset, reset_charged, more, fault
            -- parts/ticks.lua
            -- The ticks of a cron rule: the last one that is past, and the next one. One is nil if the ticks are not around now.
            -- Reads: unpack, request, at, now, span
            -- Sets: at, past, coming
            local past, coming
            for _ = 1, span do
              local tick
              tick, at = unpack('>I7', request, at)
              if tick <= now then past = tick elseif not coming then coming = tick end
            end
            if past and coming then
              if stamp < past then amount = 0 end
              if amount + cost > count then room = cost > count and never or coming - now end
              remaining = count - amount
              reset = amount > 0 and coming - now or 0
              reset_charged = coming - now
              more = count > 0 and coming - now or never
              stamp = now
              amount = amount + cost
            else
              fault = fault or -2
            end
          elseif kind == 'c' then
            -- parts/sliding_counter.lua
            -- A sliding counter: the weight of this slot, and the share of the slot before that the window still covers. No product
            -- exceeds 2^53, because a * b / c is calculated as a * floor(b / c) + floor(a * (b % c) / c).
            -- Reads: never, now, cost, later, report, count, span, stamp, amount, before, fault
            -- Sets: stamp, amount, before, room, remaining, reset, reset_charged, more, fault
            if amount > 67108864 or before > 67108864 then amount, before, fault = 0, 0, fault or -3 end
            local slot = span
            local start = now - now % slot
            if stamp == start - slot then
              amount, before = 0, amount
            elseif stamp ~= start then
              amount, before = 0, 0
            end
            -- How much of this slot is left. The same length of the slot before still counts.
            local left = slot - (now - start)
            -- parts/fading.lua
            -- How long a call waits for the slots of a sliding counter to fade.
            -- Reads: never, cost, count, slot, left, amount, before
            -- Sets: room
            local allowed = count - cost
            local free = allowed - amount
            if cost > count then
              room = never
            elseif free < 0 then
              -- The call does not fit in this slot. In the next slot the weight of this one fades, until `allowed` of it is left.
              room = left + slot - (allowed * math.floor(slot / amount) + math.floor(allowed * (slot % amount) / amount))
            elseif free < before then
              room = left - (free * math.floor(slot / before) + math.floor(free * (slot % before) / before))
            end
            if report then
              local faded = math.ceil(before * (left / slot))
              -- The quotient may be off by one: step to the least weight that is enough.
              local whole, part = math.floor(slot / before), slot % before
              if faded < before and left > faded * whole + math.floor(faded * part / before) then
                faded = faded + 1
              elseif faded > 0 and left <= (faded - 1) * whole + math.floor((faded - 1) * part / before) then
                faded = faded - 1
              end
              remaining = count - amount - faded
              reset = amount > 0 and left + slot or before > 0 and left or 0
              reset_charged = left + slot
              do
                local amount = amount + (not later and remaining >= cost and cost or 0)
                local cost, room = 1, 0
                -- parts/fading.lua
                -- How long a call waits for the slots of a sliding counter to fade.
                -- Reads: never, cost, count, slot, left, amount, before
                -- Sets: room
                local allowed = count - cost
                local free = allowed - amount
                if cost > count then
                  room = never
                elseif free < 0 then
                  -- The call does not fit in this slot. In the next slot the weight of this one fades, until `allowed` of it is left.
                  room = left + slot - (allowed * math.floor(slot / amount) + math.floor(allowed * (slot % amount) / amount))
                elseif free < before then
                  room = left - (free * math.floor(slot / before) + math.floor(free * (slot % before) / before))
                end
                more = room
              end
            end
            stamp = start
            amount = amount + cost
          elseif kind == 'b' then
            -- parts/token_bucket.lua
            -- A token bucket. Once it is unused, it is like a new one: tokens that have flowed in are lost.
            -- Reads: unpack, request, at, never, now, cost, later, report, lapse, count, span, stamp, amount
            -- Sets: at, stamp, amount, before, room, lapse, remaining, reset, reset_charged, more
            -- parts/level.lua
            -- The level of a token bucket now. Levels are in tokens * span, so in each microsecond exactly `count` flows in.
            -- Reads: unpack, request, at, now, count, span, stamp, amount
            -- Sets: capacity, initial, reset_after, at, full, ends, unused, level
            local capacity, initial, reset_after
            capacity, initial, reset_after, at = unpack('>I7I7I7', request, at)
            local full = capacity * span
            local ends = stamp + reset_after
            local unused = ends <= now
            local level
            if unused then
              level = initial * span
            elseif amount < full and now - stamp < math.ceil((full - amount) / count) then
              level = amount + (now - stamp) * count
            else
              level = full
            end
            local needed = cost * span
            if not unused and initial < cost then
              -- Once the bucket is unused, the call never fits.
              lapse = math.min(lapse, ends - now)
            end
            if cost > capacity then
              room = never
            elseif needed > level then
              room = math.ceil((needed - level) / count)
              -- Nothing flows into an unused bucket, and without calls a bucket becomes unused.
              if unused then
                room = never
              elseif ends - now <= room then
                room = initial >= cost and ends - now or never
              end
            end
            if report then
              remaining = math.floor(level / span)
              reset = unused and 0 or math.min(math.ceil((full - level) / count), ends - now)
              reset_charged = math.min(math.ceil((full - level + needed) / count), reset_after)
              local taken = not later and remaining >= cost and needed or 0
              local unused_in = taken > 0 and reset_after or unused and 0 or ends - now
              more = math.ceil((span - level + taken) / count)
              if capacity == 0 then
                more = never
              elseif unused_in <= more then
                more = unused_in > 0 and initial > 0 and unused_in or never
              end
            end
            -- Earlier hits do not matter to a new or a full bucket.
            if unused or level == full then before = now end
            stamp = now
            amount = level - needed
          else
            return redis.error_reply('TALLYGATE there is no algorithm ' .. kind)
          end
          if late then
            room = 0
            amount = math.max(math.min(amount, kind == 'c' and 67108864 or 2 ^ 53 - 1), 0)
          end
          next_cells[#next_cells + 1] = room <= 0 and struct.pack('>I7I7I7', stamp, amount, before) or ''
        end
        -- parts/weigh.lua
        -- Adds a rule to the decision. The call waits for the rule with the longest wait. The code is this rule, or the first
        -- duplicate that denies the call.
        -- Reads: cost, later, report, rule, kind, room, remaining, reset, reset_charged, more, wait, duplicate, reports
        -- Sets: wait, code, duplicate, reports
        if room > 0 then
          if room > wait then
            wait = room
            if not duplicate then code = rule end
          end
          if kind == 'd' and not duplicate then
            code = rule
            duplicate = true
          end
        end
        if report then
          local counts_calls = kind == 'd' or kind == 'l'
          local weight = later and 0 or counts_calls and math.min(cost, 1) or cost
          reports[rule + 1] = { weight, remaining, reset, reset_charged, more }
        end
        rule = rule + 1
      end
      -- The head of the tally after the call is charged.
      if next_cells then head = table.concat(next_cells) .. string.sub(head, cell_bytes + 1) end
      if #head < head_bytes then head = head .. string.rep('\0', head_bytes - #head) end
      if charges then
        charges[subject] = {
          name, head, largest, reach, most, ttl, tail, entries, last, weighed, surplus, total, later and 0 or cost
        }
      end
    end
  end
  if charges and now > begun then
    -- A tally has moved the time forward. All subjects are decided as of one time, so the request begins anew.
    arg, key = arg - 1, key - subjects
  else
    -- All rules were asked. A call of a banned subject waits for the end of the ban and for the rules, whichever takes
    -- longer. If a rule lapses before the wait ends, the call never fits. This is unknown for a part until the other
    -- parts are decided, and for a wait that is only an upper bound.
    if banned > 0 and not late then
      code = -4
      wait = math.max(wait, banned)
    end
    if not part and not is_bound and wait >= lapse then wait = never end
    if fault then
      code = fault
      wait = 0
    end

    if code == -1 and charging then
      -- parts/charge.lua
      -- Charges the call to every subject.
      -- Reads: call, unpack, now, subjects, cost, late, charges, leases, front, budget
      -- Sets: cost, name, head, largest, reach, most, ttl, tail, entries, last, weighed, surplus, total, front, budget
      for subject = 1, subjects do
        local lease = leases and leases[subject]
        if lease then
          -- Forgets leases that have ended, and leases from before the clock was set back. One call forgets a limited number.
          local name, id, ends, ttl, held = lease[1], lease[2], lease[3], lease[4], lease[5]
          local others = call('ZCOUNT', name, '-inf', '+inf') - held
          if others > 0 then
            local ended = call('ZCOUNT', name, '-inf', now)
            local later = others - ended
            if ended > 0 then call('ZREMRANGEBYRANK', name, 0, math.min(ended, 128) - 1) end
            if later > 0 then call('ZREMRANGEBYRANK', name, -math.min(later, 128), -1) end
          end
          call('ZADD', name, ends, id)
          -- The TTL is twice the length of a lease, so most calls need not renew it.
          if call('PTTL', name) < ttl / 2 then call('PEXPIRE', name, ttl) end
        elseif lease == nil then
          if charges then
            local charge = charges[subject]
            name, head, largest, reach, most, ttl = charge[1], charge[2], charge[3], charge[4], charge[5], charge[6]
            tail, entries, last, weighed = charge[7], charge[8], charge[9], charge[10]
            surplus, total, front, cost = charge[11], charge[12], nil, charge[13]
          end
          local head_bytes = #head
          if cost == 0 then
            -- The call has used nothing of this unit.
          elseif largest == 0 then
            call('SET', name, head, 'PX', ttl)
          else
            -- A call costs more than every window counts only if all windows count calls: then one unit is enough.
            local weight = math.min(cost, largest)
            if late and total and total + weight >= 2 ^ 32 then
              -- The limits bound what counts, but not what is charged afterwards. Sums have room for less than 2^32. What has
              -- ended is dropped, and takes no room.
              local room
              do
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
                room = 2 ^ 32 - 1 - weight
              end
              weight = math.min(weight, room)
            end
            if weight > 0 then
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
        end
      end
    elseif ban and not peek and not provisional and (code > -1 or denial and code == -1) then
      -- parts/ban_count.lua
      -- Counts the denial towards a ban. The slots are a ring: the next one holds the oldest denial.
      -- Reads: call, unpack, now, ban
      -- Sets: nothing
      local name, head, cell_bytes, denials = ban[1], ban[2], ban[3], ban[4]
      local within, duration, ttl = ban[5], ban[6], ban[7]
      local since, ends, slot, slots = 0, 0, 0, string.rep('\0', denials * 7)
      if #head > 0 then
        since, ends, slot = unpack('>I7I7I7', head, cell_bytes + 1)
        slots = string.sub(head, cell_bytes + 21 + 1)
      end
      local after = string.sub(slots, (slot + 1) * 7 + 1)
      slots = string.sub(slots, 1, slot * 7) .. struct.pack('>I7', now) .. after
      slot = (slot + 1) % denials
      local oldest = unpack('>I7', slots, slot * 7 + 1)
      if oldest > now - within and oldest <= now + 128000 then
        -- parts/begin_ban.lua
        -- Begins a ban, and counts denials from 0. A ban whose duration is 0 ends at once.
        -- Reads: now, denials, duration
        -- Sets: since, ends, slot, slots
        since = now
        ends = now + duration
        slot = 0
        slots = string.rep('\0', denials * 7)
      end
      slots = struct.pack('>I7I7I7', since, ends, slot) .. slots
      if #head > 0 then
        call('SETRANGE', name, cell_bytes, slots)
        call('PEXPIRE', name, ttl)
      else
        call('SET', name, string.rep('\0', cell_bytes) .. slots, 'PX', ttl)
      end
    end
    -- parts/answer.lua
    -- Answers one request by a string, because an array takes Redis as long as a read. The fields are signed integers:
    --   now          the server's time
    --   code         -1 when admitted, else the rule that denies, counted from 0 across the subjects;
    --                -2 when the ticks are not around now: ask again with other ticks; or when the clock was set back
    --                and more has to be forgotten than this call has time for: ask again;
    --                -3 when a tally cannot be read: ask alone for the server's error;
    --                -4 when a subject is banned
    --   wait         the time until the same call would be admitted: 0 when it is, -1 when it never will be
    --   lapse        only for a part: the time after which a rule would not admit the call any more, or -1
    --   remaining, reset, more  for each rule, if a report was asked for and the call was decided: the greatest cost that would
    --                be admitted now, the time until the rule is unused, and the time until a cost of 1 would be admitted: 0 when
    --                it is, -1 when it never will be
    -- Reads: never, now, alone, answers, report, part, charging, code, wait, lapse, fault, rule, reports
    -- Sets: answers
    local answer = struct.pack('>i7i7i7', now, code, wait == never and -1 or wait)
    if part then answer = answer .. struct.pack('>i7', lapse == never and -1 or lapse) end
    if report and not fault then
      for i = 1, rule do
        local of = reports[i]
        local weight, remaining, reset, reset_charged, more = of[1], of[2], of[3], of[4], of[5]
        if code == -1 and charging and weight > 0 then
          remaining = remaining - weight
          reset = reset_charged
        end
        -- In a forged value, the entry in the way may be over already.
        if remaining > 0 or more < 0 then more = 0 elseif more == never then more = -1 end
        answer = answer .. struct.pack('>i7i7i7', remaining > 0 and remaining or 0, reset, more)
      end
    end
    if alone then return answer end
    answers[#answers + 1] = answer
    now = server_now
  end
end

return table.concat(answers)
