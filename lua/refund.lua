--[[ Refund or settle one admitted call: in every rule in which the call still counts, replace its cost by what it used. Or leave
     at most so much of one rule: it then counts more than its calls, because the other side has counted more.

  KEYS[i]  the tallies of the call's subjects; parts/read.lua has their layout
  ARGV     the protocol version, the request as decide.lua took it, the time at which it was admitted, and for each
           subject the cost that the call has from now on, or one for all: 0 for a refund. Of one subject, three more
           may follow: the number of the rule of which less is left, how much is left of it at most, and for how many
           microseconds from now on
  Returns  packed integers, signed: the server's time, and the number of tallies that it has changed, or
           ${ASK_AGAIN} if the ticks are not around now: ask again with other ticks
  TTL      as it was; renewed where a token bucket was charged more
  Version  ${PROTOCOL}

  Everything is read before anything is written, so if one tally cannot be read, none is changed. ]]

--- @include parts/protocol.lua

local values, call = unpack, redis.call
local unpack = struct.unpack
--- @include parts/clock.lua

local request = ARGV[2]
local admitted = ARGV[3] + 0
-- If the clock has gone back by little, it stands still.
if admitted > now and admitted <= now + ${STANDSTILL} then now = admitted end
--- @include parts/request.lua
-- The number of the rule of which less is left, or 0.
local leaving, most_left, reset_after_us = 0, 0, 0
if subjects == 1 and ARGV[5] then leaving, most_left, reset_after_us = ARGV[5] + 0, ARGV[6] + 0, ARGV[7] + 0 end
local writes, tallies = {}, 0
local fault

for subject = 1, subjects do
  local name = KEYS[subject]
  local largest, reach, most, ttl
  --- @include parts/subject.lua
  if later then cost = 0 end
  local used = (ARGV[3 + subject] or ARGV[4]) + 0
  -- The weight that is given back. It is negative if more was used.
  local given_back = cost - used
  local bytes = call('STRLEN', name)
  local entries = (bytes - head_bytes) / ${ENTRY_BYTES}
  -- A value that is no tally has nothing to give back.
  if entries < 0 or entries % 1 > 0 or entries > ${LONGEST_LOG} then entries, bytes = 0, 0 end
  local head = cells > 0 and bytes > 0 and call('GETRANGE', name, 0, cell_bytes - 1) or ''
  local changed, renewed = false, false

  local cell = 1
  local next_cells = {}
  -- The sliding windows, each by its count and its length, and the length of the one of which less is left.
  local windows, left_of = {}, nil
  for number = 1, rules do
    local kind, count, span
    kind, count, span, at = unpack('>c1${INTEGER}${INTEGER}', request, at)
    if kind == '${SLIDING_WINDOW}' then
      windows[#windows + 1] = { count, span }
      if number == leaving then left_of = span end
    elseif kind ~= '${DUPLICATE}' then
      --- @include parts/cell.lua
      if fault == ${UNREADABLE} then fault, entries, bytes = nil, 0, 0 end
      local old_amount, old_before = amount, before
      -- A cell that is later than now counts as forgotten, as in parts/read.lua.
      local is_past = stamp <= now
      if leaving > 0 then
        --- @include parts/leave_in_cell.lua
      end
      if kind == '${FIXED_WINDOW}' then
        local ends = stamp + span
        if is_past and now < ends and stamp <= admitted and admitted < ends then
          amount = math.min(math.max(amount - given_back, 0), 2 ^ 53 - 1)
        end
      elseif kind == '${CRON}' then
        --- @include parts/ticks.lua
        if not past or not coming then
          fault = ${ASK_AGAIN}
        elseif is_past and past <= admitted and admitted <= stamp then
          amount = math.min(math.max(amount - given_back, 0), 2 ^ 53 - 1)
        end
      elseif kind == '${SLIDING_COUNTER}' then
        -- A slot counts until the next one ends.
        local ends = stamp + span
        if is_past and now < ends + span and stamp <= admitted and admitted < ends then
          amount = math.min(math.max(amount - given_back, 0), ${COUNTER_COUNT})
        elseif is_past and now < ends and stamp - span <= admitted and admitted < stamp then
          before = math.min(math.max(before - given_back, 0), ${COUNTER_COUNT})
        end
      else
        --- @include parts/level.lua
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
      next_cells[#next_cells + 1] = struct.pack('>${CELL}', stamp, amount, before)
    end
  end

  changed = changed and bytes > 0
  if changed then writes[#writes + 1] = { name, 0, table.concat(next_cells), renewed and ttl + 0 } end
  --- @include parts/recount_log.lua
  if changed then tallies = tallies + 1 end
end

if fault then return struct.pack('>${SIGNED}${SIGNED}', now, fault) end
for i = 1, #writes do
  local name, offset, bytes, lives = writes[i][1], writes[i][2], writes[i][3], writes[i][4]
  call('SETRANGE', name, offset, bytes)
  if lives and call('PTTL', name) < lives then call('PEXPIRE', name, lives) end
end
return struct.pack('>${SIGNED}${SIGNED}', now, tallies)
