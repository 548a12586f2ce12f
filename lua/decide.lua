--[[ Decide requests. A request is one call: every rule of every subject is charged, or none is.

  KEYS[i]  the tally of one subject, in the order of the requests; parts/read.lua has its layout
  ARGV     the protocol version, then for each request a string of packed fields: its head (parts/request.lua), and for
           each subject the subject's fields (parts/subject.lua) and its rules. The fields of a rule are its kind (1
           byte), its count, its span, and what else the kind needs:
             ${SLIDING_WINDOW}  sliding window; the span is its length
             ${DUPLICATE}  duplicate: a sliding window that counts calls, whatever their cost
             ${SLIDING_COUNTER}  sliding counter; the span is the length of a slot
             ${FIXED_WINDOW}  fixed window; the span is its length
             ${CRON}  cron; the span is the number of ticks that follow: times around now, the earliest first
             ${TOKEN_BUCKET}  token bucket; `count` tokens flow in per span; its capacity, its initial tokens and
                the time after which an unused bucket is new again (reset_after) follow
             ${CONCURRENCY}  concurrency limit, the only rule of its subject; the span is the length of a lease;
                the name of the lease follows (${LEASE_NAME_BYTES} bytes); the tally is that of parts/leases.lua
  Returns  a string of packed fields: parts/answer.lua has those of one request, and they follow each other
  TTL      set by every write that needs it: at least until the last hit stops counting, at most twice as long
  Version  ${PROTOCOL}

  A packed integer has ${INTEGER_BYTES} bytes, big endian, unless said otherwise. All numbers are below 2^53. Times
  are in microseconds; a point in time is counted from 1970, by the server's clock. The script reads everything,
  decides, and only then writes. A denial writes nothing, but is itself noted where denials lead to a ban.

  The parts are included as text, as src/expand.rs says; the constants are from src/contract.rs. There are no functions
  and no tables of locals: on Redis 6.2.5 and 7.0.15 and on Valkey 9.1.2, creating one function takes 3 to 6 % of the
  instructions of a call, each use 1 %, and a table of six fields 3 to 4 %. ]]

--- @include parts/protocol.lua

local call = redis.call
local unpack = struct.unpack
local never = 1 / 0
-- How many bytes this script call may still copy.
local budget = ${BUDGET_BYTES}
--- @include parts/clock.lua
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
  --- @include parts/request.lua
  local begun = now

  -- The decision so far.
  local rule = 0
  local code = ${ADMITTED}
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
    --- @include parts/subject.lua
    if rules == 1 and string.sub(request, at, at) == '${CONCURRENCY}' then
      local kind
      local room, remaining, reset, reset_charged, more = 0, 0, 0, 0, 0
      --- @include parts/leases.lua
      --- @include parts/weigh.lua
      rule = rule + 1
    else
      local value
      --- @include parts/read.lua
      --- @include parts/ban_check.lua

      local cell = 1
      local next_cells = cells > 0 and {}
      for _ = 1, rules do
        local kind, count, span
        kind, count, span, at = unpack('>c1${INTEGER}${INTEGER}', request, at)
        -- Each algorithm sets the time to wait until the call fits. For a report it sets what remains; the time until
        -- the rule is unused, now and once the call is charged; and, if nothing remains now or then, the time until a
        -- cost of 1 fits.
        local room, remaining, reset, reset_charged, more = 0, 0, 0, 0, 0
        if kind == '${SLIDING_WINDOW}' or kind == '${DUPLICATE}' then
          --- @include parts/window.lua
          if late then room = 0 end
        else
          --- @include parts/cell.lua
          if kind == '${FIXED_WINDOW}' then
            --- @include parts/fixed_window.lua
          elseif kind == '${CRON}' then
            --- @include parts/cron.lua
          elseif kind == '${SLIDING_COUNTER}' then
            --- @include parts/sliding_counter.lua
          elseif kind == '${TOKEN_BUCKET}' then
            --- @include parts/token_bucket.lua
          else
            return redis.error_reply('TALLYGATE there is no algorithm ' .. kind)
          end
          if late then
            room = 0
            amount = math.max(math.min(amount, kind == '${SLIDING_COUNTER}' and ${COUNTER_COUNT} or 2 ^ 53 - 1), 0)
          end
          next_cells[#next_cells + 1] = room <= 0 and struct.pack('>${CELL}', stamp, amount, before) or ''
        end
        --- @include parts/weigh.lua
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
      code = ${BANNED}
      wait = math.max(wait, banned)
    end
    if not part and not is_bound and wait >= lapse then wait = never end
    if fault then
      code = fault
      wait = 0
    end

    if code == ${ADMITTED} and charging then
      --- @include parts/charge.lua
    elseif ban and not peek and not provisional and (code > ${ADMITTED} or denial and code == ${ADMITTED}) then
      --- @include parts/ban_count.lua
    end
    --- @include parts/answer.lua
    now = server_now
  end
end

return table.concat(answers)
