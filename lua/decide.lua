--[[ Decide requests: charge every rule of every subject of a request, or none.

  KEYS[i]  the tally of one subject, in the order of the requests: a string of hits, oldest first, each the time of one
           admitted unit of weight in microseconds since 1970, as 7 bytes, big endian
  ARGV     protocol version, then per request
             the number of its subjects, its cost, then per subject
               the number of its rules, their largest count, their longest window in microseconds, then per rule
                 'w' (sliding window) or 'd' (duplicate: the same, but weighing calls, and named first), count, window
  Returns  { now in microseconds, then per request: rule, retry_after in microseconds }
             rule         0 when admitted, else the rule to name, counted from 1 across the request's subjects
             retry_after  0 when admitted; -1 when the call can never fit
  TTL      set by every write that needs it: at least until the last hit counts no more, at most a quarter longer
  Version  1; what these fields mean to the caller is in lib.rs

  All numbers are integers below 2^53. A denial writes nothing. The clock is the server's alone. ]]

if ARGV[1] ~= '1' then
  return redis.error_reply('TALLYGATE this script speaks protocol 1, not ' .. tostring(ARGV[1]))
end

local call = redis.call
local pack, unpack = struct.pack, struct.unpack
local floor, ceil = math.floor, math.ceil

local HIT_BYTES = 7
-- Up to this many hits, reading the end of a tally at once is cheaper than asking for single hits.
local TAIL_HITS = 256

local clock = call('TIME')
local now_us = clock[1] * 1000000 + clock[2]
local hit_now = pack('>I7', now_us)

-- How long a tally lives after a hit: its longest window, and as much more as hits may save renewing it for.
local function ttl_ms(longest_us)
  return ceil((longest_us + longest_us / 8) / 1000)
end

-- The clock was set back: what lies in the future is forgotten, lest it block longer than its window.
local function forget_future(subject)
  local log = call('GETRANGE', subject.key, 0, -1)
  local length = #log
  while length > 0 and unpack('>I7', log, length - HIT_BYTES + 1) > now_us do
    length = length - HIT_BYTES
  end
  if length == 0 then
    call('DEL', subject.key)
  else
    call('SET', subject.key, string.sub(log, 1, length), 'PX', ttl_ms(subject.longest_us))
  end
end

local function read_tail(subject)
  local want = subject.largest
  if want > TAIL_HITS then want = 1 end
  local tail = call('GETRANGE', subject.key, -HIT_BYTES * want, -1)
  subject.tail = tail
  subject.complete = #tail < HIT_BYTES * want
  subject.last_us = #tail > 0 and unpack('>I7', tail, #tail - HIT_BYTES + 1) or nil
end

local function read(subject)
  read_tail(subject)
  if subject.last_us and subject.last_us > now_us then
    forget_future(subject)
    read_tail(subject)
  end
end

-- The time of the nth newest hit, or nil where there are fewer.
local function nth_newest(subject, n)
  local tail = subject.tail
  local at = #tail - HIT_BYTES * n
  if at >= 0 then return (unpack('>I7', tail, at + 1)) end
  if subject.complete then return nil end
  local hit = call('GETRANGE', subject.key, -HIT_BYTES * n, -HIT_BYTES * n + HIT_BYTES - 1)
  -- A range that begins before the string is cut short.
  if #hit < HIT_BYTES then return nil end
  return (unpack('>I7', hit))
end

-- Drops the hits that count in no window any more. They are found by time, not by count: during a deploy another version
-- of the policy may allow more.
local function compact(subject, length)
  local dead_us = now_us - subject.longest_us
  local low, high = 0, length / HIT_BYTES
  while low < high do
    local middle = floor((low + high) / 2)
    local hit = call('GETRANGE', subject.key, HIT_BYTES * middle, HIT_BYTES * middle + HIT_BYTES - 1)
    if unpack('>I7', hit) <= dead_us then low = middle + 1 else high = middle end
  end
  if low > 0 then
    call('SET', subject.key, call('GETRANGE', subject.key, HIT_BYTES * low, -1), 'PX', ttl_ms(subject.longest_us))
  end
end

local function charge(subject, cost)
  local length = call('APPEND', subject.key, cost == 1 and hit_now or string.rep(hit_now, cost))
  local eighth_us = subject.longest_us / 8
  local last_us = subject.last_us
  if not last_us or floor(last_us / eighth_us) ~= floor(now_us / eighth_us) then
    call('PEXPIRE', subject.key, ttl_ms(subject.longest_us))
  end
  if length > 2 * HIT_BYTES * subject.largest then compact(subject, length) end
end

local reply = { now_us }
local key, arg = 0, 2

while ARGV[arg] do
  local cost = ARGV[arg + 1] + 0
  local subjects = {}
  local rule, named, duplicate, retry_us = 0, 0, false, 0
  local last = key + ARGV[arg]
  arg = arg + 2

  while key < last do
    key = key + 1
    local subject = { key = KEYS[key], largest = ARGV[arg + 1] + 0, longest_us = ARGV[arg + 2] + 0 }
    subjects[#subjects + 1] = subject
    read(subject)
    local rules = ARGV[arg] + 0
    arg = arg + 3

    for _ = 1, rules do
      rule = rule + 1
      local kind, count, window_us = ARGV[arg], ARGV[arg + 1] + 0, ARGV[arg + 2] + 0
      arg = arg + 3
      local room_us = 0
      local weight = kind == 'd' and 1 or cost
      if weight > count then
        room_us = math.huge
      else
        local hit_us = nth_newest(subject, count - weight + 1)
        if hit_us then room_us = hit_us + window_us - now_us end
      end
      if room_us > 0 then
        if room_us > retry_us then
          retry_us = room_us
          if not duplicate then named = rule end
        end
        if kind == 'd' and not duplicate then
          named, duplicate = rule, true
        end
      end
    end
  end

  if named == 0 then
    for i = 1, #subjects do charge(subjects[i], cost) end
  end
  reply[#reply + 1] = named
  reply[#reply + 1] = retry_us == math.huge and -1 or retry_us
end

return reply
