-- The script that decided all calls under version 5 of the protocol, before there was one for sliding windows alone and
-- a log that keeps weights. It is kept as it was, to measure the scripts of today beside it; peer/general.rs calls it.

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
  Returns  a string of packed fields: parts/answer.lua has those of one request, and they follow each other
  TTL      set by every write that needs it: at least until the last hit stops counting, at most an eighth longer
  Version  5

  A packed integer has 7 bytes, big endian, unless said otherwise. All numbers are below 2^53. Times
  are in microseconds; a point in time is counted from 1970, by the server's clock. The script reads everything,
  decides, and only then writes. A denial writes nothing, except itself where denials lead to a ban.

  The parts are included as text, as src/expand.rs says; the constants are from src/contract.rs. There are no functions:
  creating one costs about a quarter of a read. ]]

-- parts/protocol.lua
-- Refuses a caller of another version.
-- Reads: nothing
-- Sets: nothing
if ARGV[1] ~= '5' then
  return redis.error_reply('TALLYGATE this script speaks protocol 5, not ' .. tostring(ARGV[1]))
end

local call = redis.call
local unpack = struct.unpack
local never = 1 / 0
-- parts/clock.lua
-- The server's time.
-- Reads: call
-- Sets: clock, now
local clock = call('TIME')
local now = clock[1] * 1000000 + clock[2]

local alone = not ARGV[3]
-- One of several requests fails alone if its tally cannot be read.
local read = alone and call or redis.pcall
local answers = not alone and {}
local arg = 2
local key = 0

while ARGV[arg] do
  local request = ARGV[arg]
  arg = arg + 1
  -- parts/request.lua
  -- The head of a packed request; the fields of its first subject begin at `at`.
  --   subjects  the number of its subjects (1 byte)
  --   asked     what is asked (1 byte): 1 to report on every rule, 2 to charge nothing, their sum for both
  --   cost      the weight of the call
  -- Reads: unpack, request
  -- Sets: subjects, asked, cost, at, report, peek, charging
  local subjects, asked, cost, at = unpack('>BBI7', request)
  local report = asked % 2 == 1
  local peek = asked >= 2
  local charging = not peek and cost > 0

  -- The decision so far.
  local rule = 0
  local code = -1
  local wait, lapse, banned = 0, never, 0
  local duplicate, fault, ban = false, nil, nil
  local reports = report and {}

  -- The last subject, as charging needs it; `charges` has all subjects where there are several.
  local name, head, largest, reach, ttl, last, fresh
  local charges = subjects > 1 and {}

  for subject = 1, subjects do
    key = key + 1
    name = KEYS[key]
    -- parts/subject.lua
    -- The fields of one subject in a packed request; its first rule begins at `at`.
    --   rules             the number of its rules (1 byte)
    --   cells             how many of them have a cell (2 bytes): those that are no sliding windows
    --   denials           how many denials lead to a ban (2 bytes); 0 where none do
    --   largest, reach    the largest count and the greatest length of its sliding windows; 0 where there are none
    --   want, from        how many integers to read from the end of its tally (2 bytes), and where these begin (text, ended
    --                     by a zero byte)
    --   ttl               the milliseconds that the tally is to live (text, ended by a zero byte)
    --   within, duration  only where denials lead to a ban: the time within which they do, and how long the ban lasts
    -- Reads: unpack, request, at
    -- Sets: rules, cells, denials, largest, reach, want, from, ttl, within, duration, at, cell_bytes, head_bytes
    local rules, cells, denials, want, from, within, duration
    rules, cells, denials, largest, reach, want, from, ttl, at = unpack('>BI2I2I7I7I2ss', request, at)
    local cell_bytes = cells * 21
    local head_bytes = cell_bytes
    if denials > 0 then
      within, duration, at = unpack('>I7I7', request, at)
      head_bytes = cell_bytes + 21 + denials * 7
    end
    -- parts/read.lua
    -- Reads a tally, with as few commands as that takes. It is a string of packed integers, in three parts:
    --   the cells  for each rule that is no sliding window, in the order of the rules: see parts/cell.lua
    --   the ban    where denials lead to one: when it began, when it ends, the number of the next slot, and the slots, each
    --              with the time of a denial
    --   the log    the time of each unit of weight that the sliding windows admitted, oldest first
    -- `head` is the cells and the ban, `tail` the end of the log, `hits` the number of hits in all of it (or never, where
    -- `tail` is not all and the number unknown), `last` the time of the last one, `latest` the latest time of all.
    -- No time is as late as 2^53. Text is: each of its characters is at least a space.
    -- Reads: call, unpack, never, alone, read, name, want, from, largest, cell_bytes, head_bytes
    -- Sets: head, tail, hits, last, latest, fault
    local tail, hits = '', 0
    head = ''
    local value = read('GETRANGE', name, from, '-1')
    if not alone and value.err or #value % 7 > 0 or #value > 0 and #value < head_bytes then
      fault = -3
    elseif head_bytes == 0 then
      tail = value
      hits = #tail < want * 7 and #tail / 7 or never
    elseif #value < want * 7 or largest == 0 then
      head = string.sub(value, 1, head_bytes)
      tail = string.sub(value, head_bytes + 1)
      hits = #tail / 7
    else
      head = call('GETRANGE', name, 0, head_bytes - 1)
      tail = string.sub(value, head_bytes + 1)
      hits = (call('STRLEN', name) - head_bytes) / 7
    end
    last = #tail > 0 and unpack('>I7', tail, #tail - 7 + 1) or nil

    local latest = last or 0
    for cell = 1, #head > 0 and cell_bytes or 0, 21 do
      local stamp = unpack('>I7', head, cell)
      if stamp > latest then latest = stamp end
    end
    if latest >= 2 ^ 53 then
      fault, head, tail, hits, last, latest = -3, '', '', 0, nil, 0
    end
    -- parts/forget_future.lua
    -- Forgets what is later than now: it was written before the clock was set back, and would block for too long.
    -- Reads: call, unpack, now, name, ttl, cell_bytes, head_bytes, latest
    -- Sets: head, tail, hits, last
    if latest > now then
      local value = call('GETRANGE', name, 0, -1)
      local bytes, kept = #value, {}
      while bytes > head_bytes and unpack('>I7', value, bytes - 7 + 1) > now do
        bytes = bytes - 7
      end
      for cell = 1, cell_bytes, 21 do
        local past = unpack('>I7', value, cell) <= now
        kept[#kept + 1] = past and string.sub(value, cell, cell + 21 - 1) or string.rep('\0', 21)
      end
      head = table.concat(kept) .. string.sub(value, cell_bytes + 1, head_bytes)
      tail = string.sub(value, head_bytes + 1, bytes)
      hits = #tail / 7
      last = hits > 0 and unpack('>I7', tail, #tail - 7 + 1) or nil
      call('SET', name, head .. tail, 'PX', ttl)
    end
    -- parts/ban_check.lua
    -- How long the subject is banned; or else what parts/ban_count.lua needs to count a denial.
    -- Reads: unpack, now, name, head, cell_bytes, denials, within, duration, ttl, banned
    -- Sets: banned, ban
    if denials > 0 then
      local since, ends = 0, 0
      if #head > 0 then since, ends = unpack('>I7I7', head, cell_bytes + 1) end
      if since <= now and now < ends then
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
      -- Each kind of rule sets the time to wait until the call fits, and for a report what remains and the time until
      -- the rule is as if it had never counted: now, and once the call is charged.
      local room, remaining, reset, reset_charged = 0, 0, 0, 0
      if kind == 'w' or kind == 'd' then
        -- parts/window.lua
        -- A sliding window, or the window of a duplicate. A call fits once the newest hit that leaves too little room for it is
        -- as old as the window.
        -- Reads: call, unpack, never, now, cost, report, name, head_bytes, tail, hits, last, kind, count, span
        -- Sets: room, remaining, reset, reset_charged
        local weight = kind == 'd' and 1 or cost
        if weight > count then
          room = never
        else
          local nth = count - weight + 1
          local before = #tail - nth * 7
          if before >= 0 then
            room = unpack('>I7', tail, before + 1) + span - now
          elseif nth <= hits and #tail < hits * 7 then
            local hit = call('GETRANGE', name, -nth * 7, -nth * 7 + 7 - 1)
            -- The range is cut short where it begins before the string.
            if #hit == 7 then room = unpack('>I7', hit) + span - now end
          end
        end
        if report then
          local total = hits < never and hits or call('STRLEN', name) / 7
          local log = #tail == total * 7 and tail
          local horizon = now - span
          -- parts/search.lua
          -- Binary search: how many hits of a log of `total` hits are not later than `horizon`. The log is the string `log`;
          -- without one, single hits are read from the tally.
          -- Reads: call, unpack, name, head_bytes, log, total, horizon
          -- Sets: low
          local low = 0
          do
            local high = total
            while low < high do
              local middle = math.floor((low + high) / 2)
              local before = middle * 7
              local hit
              if log then
                hit = unpack('>I7', log, before + 1)
              else
                before = head_bytes + before
                hit = unpack('>I7', call('GETRANGE', name, before, before + 7 - 1))
              end
              if hit <= horizon then low = middle + 1 else high = middle end
            end
          end
          remaining = count - (total - low)
          reset = total > low and last + span - now or 0
          reset_charged = span
        end
      else
        -- parts/cell.lua
        -- Reads the cell of a rule that is no sliding window, and moves `cell` to the next. A cell is three integers:
        --   sliding counter  the start of the slot, its weight, the weight of the slot before
        --   fixed window     when it opened, its weight, 0
        --   cron             the last hit, the weight since the last tick, 0
        --   token bucket     the last hit, the level after it in tokens * span, since when hits count in that level
        -- Reads: unpack, head, cell
        -- Sets: stamp, amount, before, cell
        local stamp, amount, before = 0, 0, 0
        if #head > 0 then stamp, amount, before = unpack('>I7I7I7', head, cell) end
        cell = cell + 21
        if kind == 'f' then
          -- parts/fixed_window.lua
          -- A fixed window, which opens with the first hit after the one before is over.
          -- Reads: never, now, cost, count, span, stamp, amount
          -- Sets: stamp, amount, room, remaining, reset, reset_charged
          if stamp + span <= now then stamp, amount = now, 0 end
          local closes = stamp + span - now
          if amount + cost > count then room = cost > count and never or closes end
          remaining = count - amount
          reset = amount > 0 and closes or 0
          reset_charged = closes
          amount = amount + cost
        elseif kind == 'k' then
          -- parts/cron.lua
          -- A window that ends at each tick of a schedule.
          -- Reads: unpack, request, at, never, now, cost, fault, count, span, stamp, amount
          -- Sets: at, stamp, amount, room, remaining, reset, reset_charged, fault
          -- parts/ticks.lua
          -- The ticks of a cron rule: the last that is past, and the first that is coming. One of them is nil where the ticks are
          -- not around now.
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
            stamp = now
            amount = amount + cost
          else
            fault = fault or -2
          end
        elseif kind == 'c' then
          -- parts/sliding_counter.lua
          -- A sliding counter: the weight of this slot, and the share of the slot before that the window still covers.
          -- a * b / c is calculated as a * floor(b / c) + floor(a * (b % c) / c): then no product is beyond 2^53.
          -- Reads: never, now, cost, report, count, span, stamp, amount, before
          -- Sets: stamp, amount, before, room, remaining, reset, reset_charged
          local slot = span
          local start = now - now % slot
          if stamp == start - slot then
            amount, before = 0, amount
          elseif stamp ~= start then
            amount, before = 0, 0
          end
          -- So much of this slot is left, and so much of the slot before still counts.
          local left = slot - (now - start)
          local free = count - cost - amount
          if cost > count then
            room = never
          elseif free < 0 then
            -- Not in this slot. In the next one its own weight fades, until `count - cost` of it is left.
            local allowed = count - cost
            room = left + slot - (allowed * math.floor(slot / amount) + math.floor(allowed * (slot % amount) / amount))
          elseif free < before then
            room = left - (free * math.floor(slot / before) + math.floor(free * (slot % before) / before))
          end
          if report then
            local faded = math.ceil(before * (left / slot))
            -- The quotient may be off by a little: step to the least weight that is enough.
            local whole, part = math.floor(slot / before), slot % before
            while faded < before and left > faded * whole + math.floor(faded * part / before) do
              faded = faded + 1
            end
            while faded > 0 and left <= (faded - 1) * whole + math.floor((faded - 1) * part / before) do
              faded = faded - 1
            end
            remaining = count - amount - faded
            reset = amount > 0 and left + slot or before > 0 and left or 0
            reset_charged = left + slot
          end
          stamp = start
          amount = amount + cost
        elseif kind == 'b' then
          -- parts/token_bucket.lua
          -- A token bucket. What flows in is lost once the bucket is unused: then it is as new.
          -- Reads: unpack, request, at, never, now, cost, report, lapse, count, span, stamp, amount
          -- Sets: at, stamp, amount, before, room, lapse, remaining, reset, reset_charged
          -- parts/level.lua
          -- A token bucket as it is now. Levels are in tokens * span: then a microsecond adds exactly `count`.
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
            -- A call that has to wait until then never fits.
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
          end
          -- A new bucket and a full one hold the same whatever was taken before.
          if unused or level == full then before = now end
          stamp = now
          amount = level - needed
        else
          return redis.error_reply('TALLYGATE there is no algorithm ' .. kind)
        end
        next_cells[#next_cells + 1] = room <= 0 and struct.pack('>I7I7I7', stamp, amount, before) or ''
      end
      -- parts/weigh.lua
      -- Takes a rule into account. The call has to wait for the rule with the longest wait. The code is this rule, or the
      -- first duplicate that denies the call.
      -- Reads: cost, report, rule, kind, room, remaining, reset, reset_charged, wait, duplicate, reports
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
        reports[rule + 1] = { kind == 'd' and 1 or cost, remaining, reset, reset_charged }
      end
      rule = rule + 1
    end
    -- parts/new_head.lua
    -- The head of the tally once the call is charged.
    -- Reads: name, subject, cell_bytes, head_bytes, head, tail, next_cells, largest, reach, ttl, last, charges
    -- Sets: head, fresh, charges
    fresh = #head + #tail == 0
    if next_cells then head = table.concat(next_cells) .. string.sub(head, cell_bytes + 1) end
    if #head < head_bytes then head = head .. string.rep('\0', head_bytes - #head) end
    if charges then charges[subject] = { name, head, largest, reach, ttl, last, fresh } end
  end
  -- parts/verdict.lua
  -- The decision, once all rules were asked. A call of a banned subject waits for the end of the ban and for the rules,
  -- whichever takes longer.
  -- Reads: never, wait, lapse, banned, fault
  -- Sets: code, wait
  if banned > 0 then
    code = -4
    wait = math.max(wait, banned)
  end
  if wait >= lapse then wait = never end
  if fault then
    code = fault
    wait = 0
  end

  if code == -1 and charging then
    -- parts/charge.lua
    -- Charges the call to every subject.
    -- Reads: call, unpack, now, subjects, cost, charges
    -- Sets: name, head, largest, reach, ttl, last, fresh
    local hit = struct.pack('>I7', now)
    for subject = 1, subjects do
      if charges then
        local charge = charges[subject]
        name, head, largest, reach = charge[1], charge[2], charge[3], charge[4]
        ttl, last, fresh = charge[5], charge[6], charge[7]
      end
      local head_bytes = #head
      -- A call can cost more than every window counts only where all of them count calls: then one unit is enough.
      local weight = cost == 1 and hit or string.rep(hit, math.min(cost, largest))
      if largest == 0 then
        call('SET', name, head, 'PX', ttl)
      elseif fresh and head_bytes > 0 then
        call('SET', name, head .. weight, 'PX', ttl)
      else
        if head_bytes > 0 then call('SETRANGE', name, 0, head) end
        local bytes = call('APPEND', name, weight)
        -- The TTL of a log alone has an eighth to spare, so the first hit of each eighth renews it.
        local eighth = reach / 8
        if head_bytes > 0 or not last or last - last % eighth ~= now - now % eighth then
          call('PEXPIRE', name, ttl)
        end
        -- parts/clean_up.lua
        -- Drops the hits that count in no window any more, once there may be as many of them as others. They are found by time
        -- and not by count: while a new version of the policy is rolled out, the other one may allow more.
        -- Reads: call, unpack, now, name, head, head_bytes, largest, reach, ttl, bytes
        -- Sets: nothing
        if bytes - head_bytes > 2 * largest * 7 then
          local log
          local total = (bytes - head_bytes) / 7
          local horizon = now - reach
          -- parts/search.lua
          -- Binary search: how many hits of a log of `total` hits are not later than `horizon`. The log is the string `log`;
          -- without one, single hits are read from the tally.
          -- Reads: call, unpack, name, head_bytes, log, total, horizon
          -- Sets: low
          local low = 0
          do
            local high = total
            while low < high do
              local middle = math.floor((low + high) / 2)
              local before = middle * 7
              local hit
              if log then
                hit = unpack('>I7', log, before + 1)
              else
                before = head_bytes + before
                hit = unpack('>I7', call('GETRANGE', name, before, before + 7 - 1))
              end
              if hit <= horizon then low = middle + 1 else high = middle end
            end
          end
          if low > 0 then
            call('SET', name, head .. call('GETRANGE', name, head_bytes + low * 7, -1), 'PX', ttl)
          end
        end
      end
    end
  elseif ban and code > -1 and not peek then
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
    if oldest > now - within and oldest <= now then
      -- parts/begin_ban.lua
      -- Begins a ban, and counts denials anew. A ban of no duration is over at once.
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
  -- Answers one request, by a string: an array takes Redis as long as a read. Its fields are signed integers:
  --   now          the server's time
  --   code         -1 when admitted, else the rule that denies, counted from 0 across the subjects;
  --                -2 when the ticks are not around now: ask again with others;
  --                -3 when a tally cannot be read: ask alone for the server's error;
  --                -4 when a subject is banned
  --   wait         the time until the same call would be admitted: 0 when it is, -1 when it never will be
  --   remaining, reset  only if a report was asked for and the call was decided, once per rule: the greatest cost that
  --                would be admitted now, and the time until the rule is as if it had never counted
  -- Reads: never, now, alone, answers, report, charging, code, wait, fault, rule, reports
  -- Sets: answers
  local answer = struct.pack('>i7i7i7', now, code, wait == never and -1 or wait)
  if report and not fault then
    for i = 1, rule do
      local weight, remaining, reset, reset_charged = reports[i][1], reports[i][2], reports[i][3], reports[i][4]
      if code == -1 and charging then
        remaining = remaining - weight
        reset = reset_charged
      end
      answer = answer .. struct.pack('>i7i7', remaining > 0 and remaining or 0, reset)
    end
  end
  if alone then return answer end
  answers[#answers + 1] = answer
end

return table.concat(answers)
