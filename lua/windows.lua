--[[ Decide requests of the common case, with less work than decide.lua: each is of one subject, whose rules are sliding
  windows and duplicates alone; it asks for no report, charges, and may fit all of them.

  KEYS[i]  the tally of each request; parts/read.lua has its layout
  ARGV     for each run of requests with equal rules and costs, a string of packed fields:
             back, span  for each rule: how many bytes before its last byte a log has the entry that leaves too little room,
                         if all of them weigh 1 (5 bytes); the length of its window
             reach       the greatest length of the windows
             most        a tally of more bytes than these (4 bytes) may hold as many calls that do not count any more as
                         others
             weight      what a call weighs (4 bytes)
             ttl         the milliseconds that a tally is to live (text, ended by a zero byte)
             range       for each rule, if that entry may be further from the end than ${END_BYTES} bytes: where it has its
                         time (two texts, each ended by a zero byte)
             keys        how many requests these are (2 bytes)
             duplicates  how many of the rules are duplicates (1 byte); they go before the others
  Returns  a string of packed fields: the server's time; for each request one byte, ${PLAIN_ADMITTED} when it is admitted,
           ${PLAIN_UNREADABLE} when its tally cannot be read, ${PLAIN_ASK_AGAIN} when there is more to be forgotten, as the clock was
           set back, than this call has time for: ask again; else the rule that denies it, counted from 0; and for
           each that is denied, in the same order, the time until the same call would be admitted
  TTL      as decide.lua sets it

  A packed integer has ${INTEGER_BYTES} bytes, big endian, unless said otherwise. The text of the script depends on the number
  of rules: what is between `each rule` and `end`, and in the braces of EACH, is repeated for each of them. There is no
  version, as the caller sends the text of the script that it packs the fields for. ]]

local names, values, call = KEYS, unpack, redis.call
-- One of several requests fails alone if its tally cannot be read.
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
