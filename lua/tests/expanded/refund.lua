--[[ Refund or settle one admitted call: in every rule in which the call still counts, replace its cost by what it used. Or leave
     at most so much of one rule: it then counts more than its calls, because the other side has counted more.

  KEYS[i]  the tallies of the call's subjects; parts/read.lua has their layout
  ARGV     the protocol version, the request as decide.lua took it, the time at which it was admitted, and for each
           subject the cost that the call has from now on, or one for all: 0 for a refund. Of one subject, three more
           may follow: the number of the rule of which less is left, how much is left of it at most, and for how many
           microseconds from now on
  Returns  packed integers, signed: the server's time, and the number of tallies that it has changed, or
           -2 if the ticks are not around now: ask again with other ticks
  TTL      as it was; renewed where a token bucket was charged more
  Version  7

  Everything is read before anything is written, so if one tally cannot be read, none is changed. ]]

-- parts/protocol.lua
-- Refuses a caller of another version.
-- Reads: nothing
-- Sets: nothing
if ARGV[1] ~= '7' then
  return redis.error_reply('TALLYGATE this script speaks protocol 7, not ' .. tostring(ARGV[1]))
end

local values, call = unpack, redis.call
local unpack = struct.unpack
-- parts/clock.lua
-- The server's time.
-- Reads: call
-- Sets: clock, now
local clock = call('TIME')
local now = clock[1] * 1000000 + clock[2]

local request = ARGV[2]
local admitted = ARGV[3] + 0
-- If the clock has gone back by little, it stands still.
if admitted > now and admitted <= now + 128000 then now = admitted end
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
-- The number of the rule of which less is left, or 0.
local leaving, most_left, reset_after_us = 0, 0, 0
if subjects == 1 and ARGV[5] then leaving, most_left, reset_after_us = ARGV[5] + 0, ARGV[6] + 0, ARGV[7] + 0 end
local writes, tallies = {}, 0
local fault

for subject = 1, subjects do
  local name = KEYS[subject]
  local largest, reach, most, ttl
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
  if later then cost = 0 end
  local used = (ARGV[3 + subject] or ARGV[4]) + 0
  -- The weight that is given back. It is negative if more was used.
  local given_back = cost - used
  local bytes = call('STRLEN', name)
  local entries = (bytes - head_bytes) / 11
  -- A value that is no tally has nothing to give back.
  if entries < 0 or entries % 1 > 0 or entries > 524288 then entries, bytes = 0, 0 end
  local head = cells > 0 and bytes > 0 and call('GETRANGE', name, 0, cell_bytes - 1) or ''
  local changed, renewed = false, false

  local cell = 1
  local next_cells = {}
  -- The sliding windows, each by its count and its length, and the length of the one of which less is left.
  local windows, left_of = {}, nil
  for number = 1, rules do
    local kind, count, span
    kind, count, span, at = unpack('>c1I7I7', request, at)
    if kind == 'w' then
      windows[#windows + 1] = { count, span }
      if number == leaving then left_of = span end
    elseif kind ~= 'd' then
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
      if fault == -3 then fault, entries, bytes = nil, 0, 0 end
      local old_amount, old_before = amount, before
      -- A cell that is later than now counts as forgotten, as in parts/read.lua.
      local is_past = stamp <= now
      if leaving > 0 then
        -- parts/leave_in_cell.lua
        -- Adds weight to a cell (`given_back` is negative), so that at most `most_left` is left of its rule. It is 0 for any other rule,
        -- and for a rule that would count it for longer than twice the time until the reset. The slot before of a sliding counter fades.
        -- If a call of that slot added something to it, the same number would add more a moment later.
        -- Reads: unpack, request, at, now, admitted, kind, count, span, stamp, amount, before, number, leaving, most_left, reset_after_us
        -- Sets: given_back, at, stamp, amount, before
        given_back = 0
        if number == leaving then
          local rest, stored_stamp, stored_amount, stored_before = at, stamp, amount, before
          local never, cost, later, report, lapse, fault = 1 / 0, 0, false, true, 1 / 0, nil
          local room, remaining, reset, reset_charged, more = 0, 0, 0, 0, 0
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
          else
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
            reset_charged = math.min(math.ceil((full - level + (remaining - most_left) * span) / count), reset_after)
          end
          if (kind ~= 'c' or stamp <= admitted) and reset_charged <= 2 * reset_after_us then
            given_back = math.min(most_left - remaining, 0)
          end
          at, stamp, amount, before = rest, stored_stamp, stored_amount, stored_before
        end
      end
      if kind == 'f' then
        local ends = stamp + span
        if is_past and now < ends and stamp <= admitted and admitted < ends then
          amount = math.min(math.max(amount - given_back, 0), 2 ^ 53 - 1)
        end
      elseif kind == 'k' then
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
        if not past or not coming then
          fault = -2
        elseif is_past and past <= admitted and admitted <= stamp then
          amount = math.min(math.max(amount - given_back, 0), 2 ^ 53 - 1)
        end
      elseif kind == 'c' then
        -- A slot counts until the next one ends.
        local ends = stamp + span
        if is_past and now < ends + span and stamp <= admitted and admitted < ends then
          amount = math.min(math.max(amount - given_back, 0), 67108864)
        elseif is_past and now < ends and stamp - span <= admitted and admitted < stamp then
          before = math.min(math.max(before - given_back, 0), 67108864)
        end
      else
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
        local in_use = is_past and not unused and admitted <= stamp
        if in_use and given_back < 0 and level > 0 then
          -- Like a hit of now that takes what there is: the tokens taken before may have flowed in again meanwhile.
          if level == full then before = now end
          stamp = now
          amount = math.max(level + given_back * span, 0)
          renewed = true
        elseif in_use and given_back > 0 and level < full and before <= admitted then
          -- A full bucket remembers no hit.
          amount = math.min(amount + given_back * span, full)
        end
      end
      changed = changed or renewed or amount ~= old_amount or before ~= old_before
      next_cells[#next_cells + 1] = struct.pack('>I7I7I7', stamp, amount, before)
    end
  end

  changed = changed and bytes > 0
  if changed then writes[#writes + 1] = { name, 0, table.concat(next_cells), renewed and ttl + 0 } end
  -- parts/recount_log.lua
  -- The log: gives weight of the call back, or adds what the call used beyond its cost. This changes the first entry
  -- that is not earlier than the call, if it has the time of the call or may be shared with it, and all later sums. If
  -- too many entries are later, the call gives nothing back, and added weight goes to a later entry. An entry that
  -- weighs nothing any more has the time of the entry before it.
  -- Reads: call, unpack, values, now, admitted, name, head_bytes, entries, largest, reach, cost, used, leaving, most_left,
  -- Reads: reset_after_us, windows, left_of, writes
  -- Sets: changed, writes
  if entries > 1 and admitted <= now and now < admitted + reach then
    -- Most refunds come soon after the call.
    local tail = call('GETRANGE', name, '-352', '-1')
    if #tail > entries * 11 then tail = string.sub(tail, -entries * 11) end
    local surplus = 0
    local front, total
    local horizon, beside = admitted - 1, -1
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
    local grain = math.ceil(reach / 65536)
    local is_shared = largest > 65536 and time and math.floor(time / grain) == math.floor(admitted / grain)
    -- No call weighs more than the largest window counts.
    local taken = math.min(cost, largest) - math.min(used, largest)
    if leaving > 0 then
      -- At most `most_left` is to be left of the window of this length: `taken` is negative. No window that is as long or longer
      -- comes above its count. The weight goes to the first entry that leaves the window between the reset of the other side and
      -- twice that time, unless it is far from the end.
      taken = 0
      if left_of and now < admitted + left_of then
        local _, base = unpack('>I7I4', call('GETRANGE', name, head_bytes, head_bytes + 11 - 1))
        local _, _, surplus = unpack('>BI6I4', tail, #tail - 11 + 1)
        local front
        local total = (entries - 1 + surplus - base) % 2 ^ 32
        local room = 1 / 0
        for window = 1, #windows do
          local count, span = windows[window][1], windows[window][2]
          if span >= left_of then
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
            room = math.min(room, count - weight - (span == left_of and most_left or 0))
          end
        end
        local begins, last = nil, now + 2 * reset_after_us - left_of
        do
          local horizon, beside = math.min(admitted, now + reset_after_us - left_of) - 1, -1
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
          if time and time <= last and first >= entries - 1 - 1024 then begins = first end
        end
        if begins then first, taken = begins, -math.max(room, 0) end
      end
    end
    local nearest = math.max(first, entries - 1 - 1024)
    if (time == admitted or is_shared or leaving > 0 and taken < 0) and (taken < 0 or nearest == first) then
      -- The weight changes at this entry, or at a later one if it is too far from the end, and so do the sums of all entries behind.
      first = nearest
      local log
      local back = (entries - first + 1) * 11
      if back <= #tail then log = string.sub(tail, -back) else log = call('GETRANGE', name, -back, -1) end
      local mark, rest, before = unpack('>BI6I4', log)
      local sum = unpack('>I4', log, 11 + 7 + 1)
      local own = (1 + sum - before) % 2 ^ 32
      if taken < 0 then
        -- The weight of a log is below 2^32.
        local _, base = unpack('>I7I4', call('GETRANGE', name, head_bytes, head_bytes + 11 - 1))
        local _, _, last_sum = unpack('>BI6I4', log, #log - 11 + 1)
        local total = (entries - 1 + last_sum - base) % 2 ^ 32
        taken = math.max(taken, total + 1 - 2 ^ 32)
      end
      taken = math.min(taken, own)
      local entries_behind = {}
      for at = 11 + 1, #log, 32 * 11 do
        -- Many entries are unpacked at once: it takes a third less time than one by one.
        local together = math.min((#log + 1 - at) / 11, 32)
        local format = '>' .. string.rep('BI6I4', together)
        local fields = { unpack(format, log, at) }
        for field = 1, 3 * together, 3 do
          fields[field] = fields[field] % 128 + 128
          fields[field + 2] = (fields[field + 2] - taken) % 2 ^ 32
        end
        if at == 11 + 1 and own <= taken then fields[1], fields[2] = mark % 128 + 128, rest end
        entries_behind[#entries_behind + 1] = struct.pack(format, values(fields, 1, 3 * together))
      end
      if taken ~= 0 then
        changed = true
        writes[#writes + 1] = { name, head_bytes + first * 11, table.concat(entries_behind) }
      end
    end
  end
  if changed then tallies = tallies + 1 end
end

if fault then return struct.pack('>i7i7', now, fault) end
for i = 1, #writes do
  local name, offset, bytes, lives = writes[i][1], writes[i][2], writes[i][3], writes[i][4]
  call('SETRANGE', name, offset, bytes)
  if lives and call('PTTL', name) < lives then call('PEXPIRE', name, lives) end
end
return struct.pack('>i7i7', now, tallies)
