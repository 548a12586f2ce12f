--[[ Decide requests of the common case, with less work than decide.lua: each has one subject, whose rules are only sliding
  windows and duplicates; it asks for no report, it charges, and its cost fits every rule.

  KEYS[i]  the tally of each request; parts/read.lua has its layout
  ARGV     for each run of requests with equal rules and costs, a string of packed fields:
             back, span  for each rule: how many bytes before the last byte of a log the entry begins that leaves too little
                         room, if all entries weigh 1 (5 bytes); the length of its window
             reach       the greatest length of the windows
             most        a tally of more bytes than this is cleaned up (4 bytes)
             weight      what a call weighs (4 bytes)
             ttl         the milliseconds that a tally is to live (text, ended by a zero byte)
             range       for each rule: where the entry at `back` has its time, if it may be further from the end than
                         ${END_BYTES} bytes (two texts, each ended by a zero byte)
             keys        how many requests these are (2 bytes)
             duplicates  how many of the rules are duplicates (1 byte); they go before the others
  Returns  a string of packed fields: the server's time; one byte for each request: ${PLAIN_ADMITTED} when it is admitted,
           ${PLAIN_UNREADABLE} when its tally cannot be read, ${PLAIN_ASK_AGAIN} when the clock was set back and more has to be
           forgotten than this call has time for: ask again; else the rule that denies it, counted from 0; then for each
           denied request, in the same order, the time until the same call would be admitted
  TTL      as decide.lua sets it

  A packed integer has ${INTEGER_BYTES} bytes, big endian, unless said otherwise. The text of the script depends on the number
  of rules: the text between `each rule` and `end`, and in the braces of EACH, is repeated for each rule. There is no version,
  because the caller sends the text of the script for which it packs the fields. ]]

local names, values, call = KEYS, unpack, redis.call
-- If several requests are decided, only the one whose tally cannot be read fails.
local alone, read = false, redis.pcall
local unpack = struct.unpack
--- @include parts/clock.lua
local budget = ${BUDGET_BYTES}
local codes, waits = {}, {}
local done = 0

for group = 1, #ARGV do
  local policy = ARGV[group]
  local ${EACH back_RULE, span_RULE, }behind = unpack('>${EACH I5I7}', policy)
  local reach, most, weight, ttl, ranges, entry, slot, apart

  local first = done + 1
  done = done + unpack('>I2', policy, #policy - 2)
  for index = first, done do
    local name = names[index]
    --- @include parts/windows.lua
    codes[index] = code
    if wait > 0 then waits[#waits + 1] = wait end
  end
end

local answer = struct.pack('>${INTEGER}', now) .. string.char(values(codes))
if #waits > 0 then answer = answer .. struct.pack('>' .. string.rep('${INTEGER}', #waits), values(waits)) end
return answer
