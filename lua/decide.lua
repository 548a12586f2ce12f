--[[ Decide requests: charge every rule of every subject of a request, or none.

  KEYS[i]  the tally of one subject, in the order of the requests. A string of integers of 7 bytes, big endian: first
           three of them for every rule that is not a sliding window (its cell), then the log, which is the time of each
           unit of weight that the sliding windows admitted, oldest first
  ARGV     protocol version, number of requests, then per request
             number of its subjects, its cost, 1 to report on every rule or 0, then per subject
               number of its rules, number of its cells, the largest count of its sliding windows or 0, the longest time
               in microseconds for which one of its rules remembers a hit, then per rule, each with its cell
                 w count window                                  sliding window                 (no cell)
                 d count window                                  the same, of calls, named first (no cell)
                 c count slot                                    sliding counter: start of slot, weight, weight before
                 f count window                                  fixed window: opened, weight, -
                 k count n tick1 ... tickn                       cron, with ticks around now: last hit, weight, -
                 b count per capacity initial reset_after        token bucket: last hit, level in tokens * per, -
  Returns  { now, then per request: rule, retry_after, then if asked per rule: remaining, reset }
             rule         0 when admitted, else the rule to name, counted from 1 across the request's subjects;
                          -1 when the ticks are not around now: ask again; -2 when a tally cannot be read: ask it alone
             retry_after  0 when admitted; -1 when the call can never fit
             remaining    the greatest cost that would be admitted now
             reset        until the rule is as if it had never counted
  TTL      set by every write that needs it: at least until the last hit counts no more, at most a quarter longer
  Version  2; what these fields mean to the caller is in lib.rs

  All numbers are integers below 2^53, all times are microseconds, those that are no durations since 1970. The clock is the
  server's. A denial writes nothing. There are no functions, as making one costs as much as reading a tally. ]]

if ARGV[1] ~= '2' then
  return redis.error_reply('TALLYGATE this script speaks protocol 2, not ' .. tostring(ARGV[1]))
end

local call, pcall = redis.call, redis.pcall
local pack, unpack = struct.pack, struct.unpack
local floor, ceil, never = math.floor, math.ceil, math.huge

local INTEGER = 7
local CELL = 3 * INTEGER
local ADMITTED, OFF_THE_CLOCK, UNREADABLE = 0, -1, -2
-- A log of up to this many hits is read with one command; of a longer one, only the hits that matter.
local TAIL_HITS = 256

local clock = call('TIME')
local now = clock[1] * 1000000 + clock[2]

local reply, requests, key, arg = { now }, ARGV[2] + 0, 0, 3

for _ = 1, requests do
  local subjects, cost, report = ARGV[arg] + 0, ARGV[arg + 1] + 0, ARGV[arg + 2] == '1'
  arg = arg + 3
  local rule, named, duplicate, wait, fault = 0, ADMITTED, false, 0, nil
  local charges, reports = subjects > 1 and {}, report and {}
  local name, head, largest, longest, last, fresh

  for subject = 1, subjects do
    key = key + 1
    name = KEYS[key]
    local rules, cells = ARGV[arg] + 0, ARGV[arg + 1] + 0
    largest, longest = ARGV[arg + 2] + 0, ARGV[arg + 3] + 0
    arg = arg + 4

    -- Read: the cells, the end of the log, how many hits the log has (or may have), and the time of the last one.
    local tail, hits = '', 0
    head = ''
    local head_bytes = cells * CELL
    local want = largest
    if cells > 0 and largest > 0 then want = 2 * largest + 1 + 3 * cells elseif cells > 0 then want = 3 * cells end
    if want > TAIL_HITS then want = 3 * cells + 1 end
    local value = pcall('GETRANGE', name, -INTEGER * want, -1)
    if type(value) == 'table' then
      fault, value = value, ''
    end
    if cells == 0 then
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

    -- The clock was set back: what lies in the future is forgotten, lest it block longer than its window.
    local future = last and last > now
    for cell = 1, #head, CELL do
      future = future or unpack('>I7', head, cell) > now
    end
    if future then
      value = call('GETRANGE', name, 0, -1)
      local bytes, kept = #value, {}
      while bytes > head_bytes and unpack('>I7', value, bytes - INTEGER + 1) > now do
        bytes = bytes - INTEGER
      end
      for cell = 1, head_bytes, CELL do
        local past = unpack('>I7', value, cell) <= now
        kept[#kept + 1] = past and string.sub(value, cell, cell + CELL - 1) or string.rep('\0', CELL)
      end
      head, tail = table.concat(kept), string.sub(value, head_bytes + 1, bytes)
      hits = #tail / INTEGER
      last = hits > 0 and unpack('>I7', tail, #tail - INTEGER + 1) or nil
      call('SET', name, head .. tail, 'PX', ceil((longest + longest / 8) / 1000))
    end

    -- Decide.
    local cell, next_cells = 1, cells > 0 and {}
    for _ = 1, rules do
      rule = rule + 1
      local kind, count = ARGV[arg], ARGV[arg + 1] + 0
      -- What this rule has to say: how long to wait, and what to report before and after the charge.
      local room, remaining, reset, reset_charged = 0, 0, 0, 0

      if kind == 'w' or kind == 'd' then
        local window = ARGV[arg + 2] + 0
        arg = arg + 3
        local weight = kind == 'd' and 1 or cost
        if weight > count then
          room = never
        else
          -- The newest hit that leaves too little room for this call.
          local nth = count - weight + 1
          local at = #tail - INTEGER * nth
          if at >= 0 then
            room = unpack('>I7', tail, at + 1) + window - now
          elseif nth <= hits and #tail < INTEGER * hits then
            local hit = call('GETRANGE', name, -INTEGER * nth, -INTEGER * nth + INTEGER - 1)
            -- A range that begins before the string is cut short.
            if #hit == INTEGER then room = unpack('>I7', hit) + window - now end
          end
        end
        if report then
          local total = hits < never and hits or call('STRLEN', name) / INTEGER
          -- The first hit inside the window.
          local low, high = 0, total
          while low < high do
            local middle = floor((low + high) / 2)
            local at = head_bytes + INTEGER * middle
            local hit = unpack('>I7', call('GETRANGE', name, at, at + INTEGER - 1))
            if hit + window <= now then low = middle + 1 else high = middle end
          end
          remaining = count - (total - low)
          reset, reset_charged = total > low and last + window - now or 0, window
        end
      else
        local has = #head > 0
        local stamp, amount, before = 0, 0, 0
        if has then stamp, amount, before = unpack('>I7I7I7', head, cell) end
        cell = cell + CELL

        if kind == 'f' then
          local window = ARGV[arg + 2] + 0
          arg = arg + 3
          if stamp + window <= now then stamp, amount = now, 0 end
          if amount + cost > count then room = cost > count and never or stamp + window - now end
          remaining, reset, reset_charged = count - amount, amount > 0 and stamp + window - now or 0, stamp + window - now
          amount = amount + cost

        elseif kind == 'k' then
          local ticks = ARGV[arg + 2] + 0
          local past, coming = nil, nil
          for tick = arg + 3, arg + 2 + ticks do
            local at = ARGV[tick] + 0
            if at <= now then past = at elseif not coming then coming = at end
          end
          arg = arg + 3 + ticks
          if past and coming then
            if stamp < past then amount = 0 end
            if amount + cost > count then room = cost > count and never or coming - now end
            remaining, reset, reset_charged = count - amount, amount > 0 and coming - now or 0, coming - now
            if coming - now > longest then longest = coming - now end
            stamp, amount = now, amount + cost
          else
            fault = fault or OFF_THE_CLOCK
          end

        elseif kind == 'c' then
          local slot = ARGV[arg + 2] + 0
          arg = arg + 3
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
            room = left + slot - (allowed * floor(slot / amount) + floor(allowed * (slot % amount) / amount))
          elseif free < before then
            -- before * left <= free * slot, with no product beyond 2^53.
            room = left - (free * floor(slot / before) + floor(free * (slot % before) / before))
          end
          if report then
            local faded = ceil(before * (left / slot))
            -- The quotient is a hair off at most: step to the least that covers.
            while faded < before and left > faded * floor(slot / before) + floor(faded * (slot % before) / before) do
              faded = faded + 1
            end
            while faded > 0 and left <= (faded - 1) * floor(slot / before) + floor((faded - 1) * (slot % before) / before) do
              faded = faded - 1
            end
            remaining = count - amount - faded
            reset = amount > 0 and left + slot or before > 0 and left or 0
            reset_charged = left + slot
          end
          stamp, amount = start, amount + cost

        elseif kind == 'b' then
          local per, capacity = ARGV[arg + 2] + 0, ARGV[arg + 3] + 0
          local initial, reset_after = ARGV[arg + 4] + 0, ARGV[arg + 5] + 0
          arg = arg + 6
          local full = capacity * per
          local unused = stamp + reset_after <= now
          if unused then
            amount = initial * per
          elseif amount < full and now - stamp < ceil((full - amount) / count) then
            amount = amount + (now - stamp) * count
          else
            amount = full
          end
          if cost > capacity then
            room = never
          elseif cost * per > amount then
            room = ceil((cost * per - amount) / count)
            -- Nothing flows into an unused bucket, and one that is left alone is unused in the end.
            if unused then
              room = never
            elseif stamp + reset_after - now <= room then
              room = initial >= cost and stamp + reset_after - now or never
            end
          end
          if report then
            remaining = floor(amount / per)
            reset = unused and 0 or math.min(ceil((full - amount) / count), stamp + reset_after - now)
            reset_charged = math.min(ceil((full - amount + cost * per) / count), reset_after)
          end
          stamp, amount = now, amount - cost * per

        else
          return redis.error_reply('TALLYGATE there is no algorithm ' .. kind)
        end
        next_cells[#next_cells + 1] = room <= 0 and pack('>I7I7I7', stamp, amount, before) or ''
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
    if next_cells then head = table.concat(next_cells) end
    if charges then charges[subject] = { name, head, largest, longest, last, fresh } end
  end

  if type(fault) == 'table' and requests == 1 then return fault end

  -- Charge.
  if named == ADMITTED and not fault and cost > 0 then
    local hit = pack('>I7', now)
    local weight = cost == 1 and hit or string.rep(hit, cost)
    for subject = 1, subjects do
      if charges then
        local charge = charges[subject]
        name, head, largest, longest, last, fresh = charge[1], charge[2], charge[3], charge[4], charge[5], charge[6]
      end
      local ttl = ceil((longest + longest / 8) / 1000)
      if largest == 0 then
        call('SET', name, head, 'PX', ttl)
      elseif fresh and #head > 0 then
        call('SET', name, head .. weight, 'PX', ttl)
      else
        if #head > 0 then call('SETRANGE', name, 0, head) end
        local bytes = call('APPEND', name, weight)
        -- The TTL has an eighth of the longest time to spare, so the first hit of each eighth renews it.
        local eighth = longest / 8
        if #head > 0 or not last or floor(last / eighth) ~= floor(now / eighth) then
          call('PEXPIRE', name, ttl)
        end
        if bytes - #head > 2 * INTEGER * largest then
          -- Drop the hits that count in no window any more. They are found by time, not by count: during a deploy another
          -- version of the policy may allow more.
          local low, high = 0, (bytes - #head) / INTEGER
          while low < high do
            local middle = floor((low + high) / 2)
            local at = #head + INTEGER * middle
            if unpack('>I7', call('GETRANGE', name, at, at + INTEGER - 1)) + longest <= now then
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

  -- Answer.
  if fault then
    named, wait = type(fault) == 'table' and UNREADABLE or fault, 0
  end
  reply[#reply + 1] = named
  reply[#reply + 1] = wait == never and -1 or wait
  if report then
    for i = 1, rule do
      local weight, remaining, reset, reset_charged = reports[i][1], reports[i][2], reports[i][3], reports[i][4]
      if named == ADMITTED then remaining, reset = remaining - weight, reset_charged end
      reply[#reply + 1] = remaining > 0 and remaining or 0
      reply[#reply + 1] = reset
    end
  end
end

return reply
