--[[ Take back the hits of one admitted call, and only these, from every rule in which they still count.

  KEYS[i]  the tallies of the call's subjects; parts/read.lua has their layout
  ARGV     the protocol version, the request as decide.lua took it, the time at which it was admitted
  Returns  packed integers, signed: the server's time, and the number of tallies that gave something back, or
           ${STALE_TICKS} when the ticks are not around now: ask again with others
  TTL      as it was
  Version  ${PROTOCOL}

  Everything is read before anything is written, so a tally that cannot be read leaves the others as they were. ]]

--- @include parts/protocol.lua

local call = redis.call
local unpack = struct.unpack
--- @include parts/clock.lua

local request = ARGV[2]
local admitted = ARGV[3] + 0
--- @include parts/request.lua
local writes = {}
local fault

for subject = 1, subjects do
  local name = KEYS[subject]
  local largest, reach, ttl
  --- @include parts/subject.lua
  local value = call('GETRANGE', name, 0, -1)
  -- What is no tally has nothing to give back.
  if #value % ${INTEGER_BYTES} > 0 or #value < head_bytes then value = '' end
  local head = string.sub(value, 1, head_bytes)
  local log = string.sub(value, head_bytes + 1)
  local changed = false

  local cell = 1
  local next_cells = {}
  for _ = 1, rules do
    local kind, count, span
    kind, count, span, at = unpack('>c1${INTEGER}${INTEGER}', request, at)
    if kind ~= '${SLIDING_WINDOW}' and kind ~= '${DUPLICATE}' then
      --- @include parts/cell.lua
      local old_amount, old_before = amount, before
      -- A cell that is later than now is as good as forgotten: see parts/forget_future.lua.
      local is_past = stamp <= now
      if kind == '${FIXED_WINDOW}' then
        local ends = stamp + span
        if is_past and now < ends and stamp <= admitted and admitted < ends then amount = math.max(amount - cost, 0) end
      elseif kind == '${CRON}' then
        --- @include parts/ticks.lua
        if not past or not coming then
          fault = ${STALE_TICKS}
        elseif is_past and past <= admitted and admitted <= stamp then
          amount = math.max(amount - cost, 0)
        end
      elseif kind == '${SLIDING_COUNTER}' then
        -- A slot counts until the next one ends.
        local ends = stamp + span
        if is_past and now < ends + span and stamp <= admitted and admitted < ends then
          amount = math.max(amount - cost, 0)
        elseif is_past and now < ends and stamp - span <= admitted and admitted < stamp then
          before = math.max(before - cost, 0)
        end
      else
        --- @include parts/level.lua
        -- A bucket that is unused or full now holds nothing of any hit.
        if is_past and not unused and level < full and before <= admitted and admitted <= stamp then
          amount = math.min(amount + cost * span, full)
        end
      end
      changed = changed or amount ~= old_amount or before ~= old_before
      next_cells[#next_cells + 1] = struct.pack('>${CELL}', stamp, amount, before)
    end
  end

  -- The log: as many hits of that time as the call was charged.
  local first, behind = 0, 0
  if admitted <= now and now < admitted + reach then
    local total = #log / ${INTEGER_BYTES}
    local horizon = admitted - 1
    --- @include parts/search.lua
    first = low
    behind = low
    local most = math.min(first + math.min(cost, largest), total)
    while behind < most and unpack('>${INTEGER}', log, behind * ${INTEGER_BYTES} + 1) == admitted do
      behind = behind + 1
    end
  end

  if #value > 0 and (changed or behind > first) then
    head = table.concat(next_cells) .. string.sub(head, cell_bytes + 1)
    log = string.sub(log, 1, first * ${INTEGER_BYTES}) .. string.sub(log, behind * ${INTEGER_BYTES} + 1)
    writes[#writes + 1] = { name, head .. log }
  end
end

if fault then return struct.pack('>${SIGNED}${SIGNED}', now, fault) end
for i = 1, #writes do call('SET', writes[i][1], writes[i][2], 'KEEPTTL') end
return struct.pack('>${SIGNED}${SIGNED}', now, #writes)
