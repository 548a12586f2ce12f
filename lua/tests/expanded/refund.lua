--[[ Take back the hits of one admitted call, and only these, from every tally that still has them.

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
      --   token bucket     the last hit, the level after it in tokens * span, since when it has been in use
      -- Reads: unpack, head, cell
      -- Sets: stamp, amount, before, cell
      local stamp, amount, before = 0, 0, 0
      if #head > 0 then stamp, amount, before = unpack('>I7I7I7', head, cell) end
      cell = cell + 21
      local old_amount, old_before = amount, before
      if kind == 'f' then
        if stamp <= admitted and admitted < stamp + span then amount = math.max(amount - cost, 0) end
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
        elseif past <= admitted and admitted <= stamp and stamp <= now then
          -- What is later than the last hit was forgotten when the clock was set back; what is later than now will be.
          amount = math.max(amount - cost, 0)
        end
      elseif kind == 'c' then
        -- What lies beyond the slot was forgotten when the clock was set back.
        if stamp <= admitted and admitted < stamp + span then
          amount = math.max(amount - cost, 0)
        elseif stamp - span <= admitted and admitted < stamp then
          before = math.max(before - cost, 0)
        end
      else
        local capacity
        capacity, at = unpack('>I7', request, at)
        at = at + 2 * 7
        -- A bucket that has been unused since is not the one that the tokens were taken from.
        if before <= admitted and admitted <= stamp then
          -- Another version of the policy may hold more. What is there stays there.
          amount = math.max(amount, math.min(amount + cost * span, capacity * span))
        end
      end
      changed = changed or amount ~= old_amount or before ~= old_before
      next_cells[#next_cells + 1] = struct.pack('>I7I7I7', stamp, amount, before)
    end
  end

  -- The log: the hits of that time, as many as the call was.
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
  local first = low
  local units = math.min(cost, largest)
  while low - first < units and low < total and unpack('>I7', log, low * 7 + 1) == admitted do
    low = low + 1
  end

  if #value > 0 and (changed or low > first) then
    head = table.concat(next_cells) .. string.sub(head, cell_bytes + 1)
    log = string.sub(log, 1, first * 7) .. string.sub(log, low * 7 + 1)
    writes[#writes + 1] = { name, head .. log }
  end
end

if fault then return struct.pack('>i7i7', now, fault) end
for i = 1, #writes do call('SET', writes[i][1], writes[i][2], 'KEEPTTL') end
return struct.pack('>i7i7', now, #writes)
