--[[ Decide requests: charge every rule of every subject of a request, or none.

  KEYS[i]  the tally of one subject, in the order of the requests. A string of integers of 7 bytes, big endian, in three
           parts: the cells, three integers for every rule that is not a sliding window; if denials lead to a ban, when
           that began, when it ends, the number of the next slot, and as many slots, each the time of a denial; and the
           log, the time of each unit of weight that the sliding windows admitted, oldest first
  ARGV     protocol version, then per request a string of packed fields, integers of 7 bytes unless said otherwise
             number of its subjects (1 byte), what is asked (1 byte: 1 to report on every rule, 2 not to charge, 3
             both), its cost, then per subject
               number of its rules (1 byte), number of its cells (2 bytes), number of denials that lead to a ban or 0 (2
               bytes), the largest count of its sliding windows or 0, the longest of them, how many integers to read
               from the end of its tally (2 bytes), where these begin (text, ended by a zero byte), the milliseconds it
               is to live (likewise), if denials lead to a ban the time in which they add up and the ban's duration,
               then per rule its kind (1 byte), its count, and by its kind, each with its cell
                 w window                                  sliding window                 (no cell)
                 d window                                  the same, of calls, named first (no cell)
                 c slot                                    sliding counter: start of slot, weight, weight before
                 f window                                  fixed window: opened, weight, -
                 k n tick1 ... tickn                       cron, with ticks around now: last hit, weight, -
                 b per capacity initial reset_after        token bucket: last hit, level in tokens * per, in use since
  Returns  per request signed integers of 7 bytes, big endian: now, rule, retry_after, then if asked per rule remaining
           and reset
             rule         0 when admitted, else the rule to name, counted from 1 across the request's subjects;
                          -1 when the ticks are not around now: ask again; -2 when a tally cannot be read: ask it alone;
                          -3 when a subject is banned
             retry_after  0 when admitted; -1 when the call can never fit
             remaining    the greatest cost that would be admitted now
             reset        until the rule is as if it had never counted
  TTL      set by every write that needs it: at least until the last hit counts no more, at most an eighth longer
  Version  4; what these fields mean to the caller is in lib.rs

  All numbers are integers below 2^53, all times are microseconds, those that are no durations since 1970. The clock is
  the server's. A denial writes nothing but itself, and that only towards a ban. There are no functions, as making one
  costs as much as reading a tally. ]]

if ARGV[1] ~= '4' then
  return redis.error_reply('TALLYGATE this script speaks protocol 4, not ' .. tostring(ARGV[1]))
end

local call, unpack = redis.call, struct.unpack
local never = 1 / 0

local INTEGER = 7
local CELL = 3 * INTEGER
-- No time is as late, but text is: each of its characters is at least a space.
local BEYOND_TIME = 2 ^ 53
local ADMITTED, OFF_THE_CLOCK, UNREADABLE, BANNED = 0, -1, -2, -3

local clock = call('TIME')
local now = clock[1] * 1000000 + clock[2]

local alone = not ARGV[3]
local read = alone and call or redis.pcall
local answers, key, arg = not alone and {}, 0, 2

while ARGV[arg] do
  local request = ARGV[arg]
  local subjects, asked, cost, at = unpack('>BBI7', request)
  local report, charging = asked % 2 == 1, asked < 2
  arg = arg + 1
  local rule, named, duplicate, wait, lapse, fault = 0, ADMITTED, false, 0, never, nil
  local charges, reports = subjects > 1 and {}, report and {}
  local name, head, largest, reach, ttl, last, fresh
  local first_key, ban = key, nil

  for subject = 1, subjects do
    key = key + 1
    name = KEYS[key]
    local rules, cells, denials, want, from, within, duration
    rules, cells, denials, largest, reach, want, from, ttl, at = unpack('>BI2I2I7I7I2ss', request, at)
    if denials > 0 then
      within, duration, at = unpack('>I7I7', request, at)
    end

    -- Read: the cells, the end of the log, how many hits the log has (or may have), and the time of the last one.
    local tail, hits = '', 0
    head = ''
    local cell_bytes = cells * CELL
    local head_bytes = denials > 0 and cell_bytes + INTEGER * (3 + denials) or cell_bytes
    local value = read('GETRANGE', name, from, '-1')
    if not alone and value.err or #value % INTEGER > 0 or #value > 0 and #value < head_bytes then
      fault, value = UNREADABLE, ''
    end
    if head_bytes == 0 then
      tail = value
      hits = #tail < INTEGER * want and #tail / INTEGER or never
    elseif #value < INTEGER * want or largest == 0 then
      head, tail = string.sub(value, 1, head_bytes), string.sub(value, head_bytes + 1)
      hits = #tail / INTEGER
    else
      head, tail = call('GETRANGE', name, 0, head_bytes - 1), string.sub(value, head_bytes + 1)
      hits = (call('STRLEN', name) - head_bytes) / INTEGER
    end
    last = #tail > 0 and unpack('>I7', tail, #tail - INTEGER + 1) or nil

    local latest = last or 0
    for cell = 1, #head > 0 and cell_bytes or 0, CELL do
      local stamp = unpack('>I7', head, cell)
      if stamp > latest then latest = stamp end
    end
    if latest >= BEYOND_TIME then
      fault, head, tail, hits, last = UNREADABLE, '', '', 0, nil
    elseif latest > now then
      -- The clock was set back: what lies in the future is forgotten, lest it block longer than its window.
      value = call('GETRANGE', name, 0, -1)
      local bytes, kept = #value, {}
      while bytes > head_bytes and unpack('>I7', value, bytes - INTEGER + 1) > now do
        bytes = bytes - INTEGER
      end
      for cell = 1, cell_bytes, CELL do
        local past = unpack('>I7', value, cell) <= now
        kept[#kept + 1] = past and string.sub(value, cell, cell + CELL - 1) or string.rep('\0', CELL)
      end
      head = table.concat(kept) .. string.sub(value, cell_bytes + 1, head_bytes)
      tail = string.sub(value, head_bytes + 1, bytes)
      hits = #tail / INTEGER
      last = hits > 0 and unpack('>I7', tail, #tail - INTEGER + 1) or nil
      call('SET', name, head .. tail, 'PX', ttl)
    end

    if denials > 0 then
      ban = { name, head, cell_bytes, denials, within, duration, ttl }
      local since, ends = 0, 0
      if #head > 0 then since, ends = unpack('>I7I7', head, cell_bytes + 1) end
      if since <= now and now < ends then
        named, wait, ban = BANNED, ends - now, nil
        break
      end
    end

    -- Decide.
    local cell, next_cells = 1, cells > 0 and {}
    for _ = 1, rules do
      rule = rule + 1
      local kind, count, span
      kind, count, span, at = unpack('>c1I7I7', request, at)
      -- What this rule has to say: how long to wait, and what to report before and after the charge.
      local room, remaining, reset, reset_charged = 0, 0, 0, 0

      if kind == 'w' or kind == 'd' then
        local weight = kind == 'd' and 1 or cost
        if weight > count then
          room = never
        else
          -- The newest hit that leaves too little room for this call.
          local nth = count - weight + 1
          local before = #tail - INTEGER * nth
          if before >= 0 then
            room = unpack('>I7', tail, before + 1) + span - now
          elseif nth <= hits and #tail < INTEGER * hits then
            local hit = call('GETRANGE', name, -INTEGER * nth, -INTEGER * nth + INTEGER - 1)
            -- A range that begins before the string is cut short.
            if #hit == INTEGER then room = unpack('>I7', hit) + span - now end
          end
        end
        if report then
          local total = hits < never and hits or call('STRLEN', name) / INTEGER
          -- The first hit inside the window.
          local low, high = 0, total
          while low < high do
            local middle = math.floor((low + high) / 2)
            local first = head_bytes + INTEGER * middle
            local hit = unpack('>I7', call('GETRANGE', name, first, first + INTEGER - 1))
            if hit + span <= now then low = middle + 1 else high = middle end
          end
          remaining = count - (total - low)
          reset, reset_charged = total > low and last + span - now or 0, span
        end
      else
        local has = #head > 0
        local stamp, amount, before = 0, 0, 0
        if has then stamp, amount, before = unpack('>I7I7I7', head, cell) end
        cell = cell + CELL

        if kind == 'f' then
          if stamp + span <= now then stamp, amount = now, 0 end
          local closes = stamp + span - now
          if amount + cost > count then room = cost > count and never or closes end
          remaining, reset, reset_charged = count - amount, amount > 0 and closes or 0, closes
          amount = amount + cost

        elseif kind == 'k' then
          local past, coming, tick
          for _ = 1, span do
            tick, at = unpack('>I7', request, at)
            if tick <= now then past = tick elseif not coming then coming = tick end
          end
          if past and coming then
            if stamp < past then amount = 0 end
            if amount + cost > count then room = cost > count and never or coming - now end
            remaining, reset, reset_charged = count - amount, amount > 0 and coming - now or 0, coming - now
            stamp, amount = now, amount + cost
          else
            fault = fault or OFF_THE_CLOCK
          end

        elseif kind == 'c' then
          local slot = span
          local start = now - now % slot
          if stamp == start - slot then amount, before = 0, amount elseif stamp ~= start then amount, before = 0, 0 end
          -- Of the slot before, this much of its time still counts.
          local left = slot - (now - start)
          local free = count - cost - amount
          if cost > count then
            room = never
          elseif free < 0 then
            -- Not in this slot. In the next one its own weight fades: the fade must leave `count - cost` of it.
            local allowed = count - cost
            room = left + slot - (allowed * math.floor(slot / amount) + math.floor(allowed * (slot % amount) / amount))
          elseif free < before then
            -- before * left <= free * slot, with no product beyond 2^53.
            room = left - (free * math.floor(slot / before) + math.floor(free * (slot % before) / before))
          end
          if report then
            local faded = math.ceil(before * (left / slot))
            -- The quotient is a hair off at most: step to the least that covers.
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
          stamp, amount = start, amount + cost

        elseif kind == 'b' then
          local per, capacity, initial, reset_after = span, nil, nil, nil
          capacity, initial, reset_after, at = unpack('>I7I7I7', request, at)
          local full = capacity * per
          local unused = stamp + reset_after <= now
          if unused then
            amount, before = initial * per, now
          elseif amount < full and now - stamp < math.ceil((full - amount) / count) then
            amount = amount + (now - stamp) * count
          else
            amount = full
          end
          if not unused and initial < cost then
            -- What flows in is lost once the bucket is unused. A call that waits for longer never fits.
            lapse = math.min(lapse, stamp + reset_after - now)
          end
          if cost > capacity then
            room = never
          elseif cost * per > amount then
            room = math.ceil((cost * per - amount) / count)
            -- Nothing flows into an unused bucket, and one that is left alone is unused in the end.
            if unused then
              room = never
            elseif stamp + reset_after - now <= room then
              room = initial >= cost and stamp + reset_after - now or never
            end
          end
          if report then
            remaining = math.floor(amount / per)
            reset = unused and 0 or math.min(math.ceil((full - amount) / count), stamp + reset_after - now)
            reset_charged = math.min(math.ceil((full - amount + cost * per) / count), reset_after)
          end
          stamp, amount = now, amount - cost * per

        else
          return redis.error_reply('TALLYGATE there is no algorithm ' .. kind)
        end
        next_cells[#next_cells + 1] = room <= 0 and struct.pack('>I7I7I7', stamp, amount, before) or ''
      end

      if room > 0 then
        if room > wait then
          wait = room
          if not duplicate then named = rule end
        end
        if kind == 'd' and not duplicate then
          named, duplicate = rule, true
        end
      end
      if report then
        reports[rule] = { kind == 'd' and 1 or cost, remaining, reset, reset_charged }
      end
    end

    fresh = #head + #tail == 0
    if next_cells then head = table.concat(next_cells) .. string.sub(head, cell_bytes + 1) end
    if #head < head_bytes then head = head .. string.rep('\0', head_bytes - #head) end
    if charges then charges[subject] = { name, head, largest, reach, ttl, last, fresh } end
  end
  key = first_key + subjects

  -- Charge.
  if named == ADMITTED and not fault and charging and cost > 0 then
    local hit = struct.pack('>I7', now)
    for subject = 1, subjects do
      if charges then
        local charge = charges[subject]
        name, head, largest, reach = charge[1], charge[2], charge[3], charge[4]
        ttl, last, fresh = charge[5], charge[6], charge[7]
      end
      -- A call that costs more than every window counts is here because they all weigh calls: one unit tells enough.
      local weight = cost == 1 and hit or string.rep(hit, math.min(cost, largest))
      if largest == 0 then
        call('SET', name, head, 'PX', ttl)
      elseif fresh and #head > 0 then
        call('SET', name, head .. weight, 'PX', ttl)
      else
        if #head > 0 then call('SETRANGE', name, 0, head) end
        local bytes = call('APPEND', name, weight)
        -- The TTL of a log alone has an eighth to spare, so the first hit of each eighth renews it.
        local eighth = reach / 8
        if #head > 0 or not last or last - last % eighth ~= now - now % eighth then
          call('PEXPIRE', name, ttl)
        end
        if bytes - #head > 2 * INTEGER * largest then
          -- Drop the hits that count in no window any more. They are found by time, not by count: during a deploy
          -- another version of the policy may allow more.
          local low, high = 0, (bytes - #head) / INTEGER
          while low < high do
            local middle = math.floor((low + high) / 2)
            local first = #head + INTEGER * middle
            if unpack('>I7', call('GETRANGE', name, first, first + INTEGER - 1)) + reach <= now then
              low = middle + 1
            else
              high = middle
            end
          end
          if low > 0 then
            call('SET', name, head .. call('GETRANGE', name, #head + INTEGER * low, -1), 'PX', ttl)
          end
        end
      end
    end
  end

  -- Count the denial towards a ban. The slots are a ring: the one to be written next holds the oldest denial.
  if ban and named > ADMITTED and not fault and charging then
    local name, head, cell_bytes, denials = ban[1], ban[2], ban[3], ban[4]
    local within, duration, ttl = ban[5], ban[6], ban[7]
    local since, ends, slot, slots = 0, 0, 0, string.rep('\0', INTEGER * denials)
    if #head > 0 then
      since, ends, slot = unpack('>I7I7I7', head, cell_bytes + 1)
      slots = string.sub(head, cell_bytes + 3 * INTEGER + 1)
    end
    local after = string.sub(slots, INTEGER * (slot + 1) + 1)
    slots = string.sub(slots, 1, INTEGER * slot) .. struct.pack('>I7', now) .. after
    slot = (slot + 1) % denials
    local oldest = unpack('>I7', slots, INTEGER * slot + 1)
    if oldest > now - within and oldest <= now then
      since, ends, slot, slots = now, now + duration, 0, string.rep('\0', INTEGER * denials)
    end
    slots = struct.pack('>I7I7I7', since, ends, slot) .. slots
    if #head > 0 then
      call('SETRANGE', name, cell_bytes, slots)
      call('PEXPIRE', name, ttl)
    else
      call('SET', name, string.rep('\0', cell_bytes) .. slots, 'PX', ttl)
    end
  end

  if wait >= lapse then wait = never end
  if fault then
    named, wait = fault, 0
  end
  -- Answer, by a string: an array costs Redis as much as reading a tally.
  local answer = struct.pack('>i7i7i7', now, named, wait == never and -1 or wait)
  if report and named >= ADMITTED then
    for i = 1, rule do
      local weight, remaining, reset, reset_charged = reports[i][1], reports[i][2], reports[i][3], reports[i][4]
      if named == ADMITTED and charging and cost > 0 then remaining, reset = remaining - weight, reset_charged end
      answer = answer .. struct.pack('>i7i7', remaining > 0 and remaining or 0, reset)
    end
  end
  if alone then return answer end
  answers[#answers + 1] = answer
end

return table.concat(answers)
