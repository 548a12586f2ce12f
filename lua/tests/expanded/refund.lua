--[[ Take back the hits of one admitted call, and only these, from every rule in which they still count.

  KEYS[i]  the tallies of the call's subjects; parts/read.lua has their layout
  ARGV     the protocol version, the request as decide.lua took it, the time at which it was admitted
  Returns  packed integers, signed: the server's time, and the number of tallies that gave something back, or
           -2 when the ticks are not around now: ask again with others
  TTL      as it was
  Version  5

  Everything is read before anything is written, so a tally that cannot be read leaves the others as they were. ]]

-- parts/protocol.lua
-- Refuses a caller of another version.
-- Reads: nothing
-- Sets: nothing
if ARGV[1] ~= '5' then
  return redis.error_reply('TALLYGATE this script speaks protocol 5, not ' .. tostring(ARGV[1]))
end

local call = redis.call
local unpack = struct.unpack
-- parts/clock.lua
-- The server's time.
-- Reads: call
-- Sets: clock, now
local clock = call('TIME')
local now = clock[1] * 1000000 + clock[2]

local request = ARGV[2]
local admitted = ARGV[3] + 0
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
local writes = {}
local fault

for subject = 1, subjects do
  local name = KEYS[subject]
  local largest, reach, ttl
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
  local value = call('GETRANGE', name, 0, -1)
  -- What is no tally has nothing to give back.
  if #value % 7 > 0 or #value < head_bytes then value = '' end
  local head = string.sub(value, 1, head_bytes)
  local log = string.sub(value, head_bytes + 1)
  local changed = false

  local cell = 1
  local next_cells = {}
  for _ = 1, rules do
    local kind, count, span
    kind, count, span, at = unpack('>c1I7I7', request, at)
    if kind ~= 'w' and kind ~= 'd' then
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
      local old_amount, old_before = amount, before
      -- A cell that is later than now is as good as forgotten: see parts/forget_future.lua.
      local is_past = stamp <= now
      if kind == 'f' then
        local ends = stamp + span
        if is_past and now < ends and stamp <= admitted and admitted < ends then amount = math.max(amount - cost, 0) end
      elseif kind == 'k' then
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
        if not past or not coming then
          fault = -2
        elseif is_past and past <= admitted and admitted <= stamp then
          amount = math.max(amount - cost, 0)
        end
      elseif kind == 'c' then
        -- A slot counts until the next one ends.
        local ends = stamp + span
        if is_past and now < ends + span and stamp <= admitted and admitted < ends then
          amount = math.max(amount - cost, 0)
        elseif is_past and now < ends and stamp - span <= admitted and admitted < stamp then
          before = math.max(before - cost, 0)
        end
      else
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
        -- A bucket that is unused or full now holds nothing of any hit.
        if is_past and not unused and level < full and before <= admitted and admitted <= stamp then
          amount = math.min(amount + cost * span, full)
        end
      end
      changed = changed or amount ~= old_amount or before ~= old_before
      next_cells[#next_cells + 1] = struct.pack('>I7I7I7', stamp, amount, before)
    end
  end

  -- The log: as many hits of that time as the call was charged.
  local first, behind = 0, 0
  if admitted <= now and now < admitted + reach then
    local total = #log / 7
    local horizon = admitted - 1
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
    first = low
    behind = low
    local most = math.min(first + math.min(cost, largest), total)
    while behind < most and unpack('>I7', log, behind * 7 + 1) == admitted do
      behind = behind + 1
    end
  end

  if #value > 0 and (changed or behind > first) then
    head = table.concat(next_cells) .. string.sub(head, cell_bytes + 1)
    log = string.sub(log, 1, first * 7) .. string.sub(log, behind * 7 + 1)
    writes[#writes + 1] = { name, head .. log }
  end
end

if fault then return struct.pack('>i7i7', now, fault) end
for i = 1, #writes do call('SET', writes[i][1], writes[i][2], 'KEEPTTL') end
return struct.pack('>i7i7', now, #writes)
