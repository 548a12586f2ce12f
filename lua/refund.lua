--[[ Take back the hits of one admitted call, and only these, from every tally that still has them.

  KEYS[i]  the tallies of the call's subjects: see decide.lua
  ARGV     protocol version, the request as decide.lua took it, when it was admitted (microseconds since 1970)
  Returns  as decide.lua does: now, how many tallies gave something back; -1 when the ticks are not around now: ask
           again
  TTL      as it was
  Version  4, together with decide.lua

  What the call had been counted in may be over by now; then there is nothing to take back. Everything is read before
  anything is written, so a tally that cannot be read leaves the others as they were. ]]

if ARGV[1] ~= '4' then
  return redis.error_reply('TALLYGATE this script speaks protocol 4, not ' .. tostring(ARGV[1]))
end

local call, unpack = redis.call, struct.unpack
local INTEGER = 7
local CELL = 3 * INTEGER
local OFF_THE_CLOCK = -1

local clock = call('TIME')
local now = clock[1] * 1000000 + clock[2]

local request, admitted = ARGV[2], ARGV[3] + 0
local subjects, _, cost, at = unpack('>BBI7', request)
local writes, off_the_clock = {}, false

for subject = 1, subjects do
  local name = KEYS[subject]
  local rules, cells, denials, largest
  rules, cells, denials, largest, _, _, _, _, at = unpack('>BI2I2I7I7I2ss', request, at)
  if denials > 0 then at = at + 2 * INTEGER end
  local head_bytes = cells * CELL + (denials > 0 and INTEGER * (3 + denials) or 0)
  local value = call('GETRANGE', name, 0, -1)
  -- What is no tally has nothing to give back.
  if #value % INTEGER > 0 or #value < head_bytes then value = '' end
  local changed = false

  -- The cells.
  local cell, next_cells = 1, {}
  for _ = 1, rules do
    local kind, count, span
    kind, count, span, at = unpack('>c1I7I7', request, at)
    if kind ~= 'w' and kind ~= 'd' then
      local stamp, amount, before, capacity = 0, 0, 0, nil
      if #value > 0 then stamp, amount, before = unpack('>I7I7I7', value, cell) end
      cell = cell + CELL
      local old_amount, old_before = amount, before
      if kind == 'f' then
        if stamp <= admitted and admitted < stamp + span then amount = math.max(amount - cost, 0) end
      elseif kind == 'k' then
        local past, coming, tick
        for _ = 1, span do
          tick, at = unpack('>I7', request, at)
          if tick <= now then past = tick else coming = tick end
        end
        off_the_clock = off_the_clock or not past or not coming
        -- What is later than the last hit was forgotten when the clock was set back; what is later than now will be.
        if past and past <= admitted and admitted <= stamp and stamp <= now then amount = math.max(amount - cost, 0) end
      elseif kind == 'c' then
        -- What lies beyond the slot was forgotten when the clock was set back.
        if stamp <= admitted and admitted < stamp + span then
          amount = math.max(amount - cost, 0)
        elseif stamp - span <= admitted and admitted < stamp then
          before = math.max(before - cost, 0)
        end
      else
        capacity, at = unpack('>I7', request, at)
        at = at + 2 * INTEGER
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

  -- The log: the first hit of that time, found by halving.
  local log = string.sub(value, head_bytes + 1)
  local low, high = 0, #log / INTEGER
  while low < high do
    local middle = math.floor((low + high) / 2)
    if unpack('>I7', log, INTEGER * middle + 1) < admitted then low = middle + 1 else high = middle end
  end
  local first, units = low, math.min(cost, largest)
  while low - first < units and low < #log / INTEGER and unpack('>I7', log, INTEGER * low + 1) == admitted do
    low = low + 1
  end

  if #value > 0 and (changed or low > first) then
    local head = table.concat(next_cells) .. string.sub(value, cells * CELL + 1, head_bytes)
    log = string.sub(log, 1, INTEGER * first) .. string.sub(log, INTEGER * low + 1)
    writes[#writes + 1] = { name, head .. log }
  end
end

if off_the_clock then return struct.pack('>i7i7', now, OFF_THE_CLOCK) end
for i = 1, #writes do call('SET', writes[i][1], writes[i][2], 'KEEPTTL') end
return struct.pack('>i7i7', now, #writes)
