--[[ Decide one request as windows.lua does, with a little less work.

  KEYS[1]  the tally of the request
  ARGV     the fields of the request, as windows.lua takes them
  Returns  as windows.lua does; an entry of the log, whose time is the server's, when the request is admitted
  TTL      as windows.lua sets it ]]

local name, policy, call = KEYS[1], ARGV[1], redis.call
local alone, read = true, call
local struct = struct
local unpack = struct.unpack
--- @include parts/clock.lua
local budget = ${BUDGET_BYTES}
local ${EACH back_RULE, span_RULE, }behind = unpack('>${EACH I5I7}', policy)
local reach, most, weight, ttl, ranges, entry, slot, apart
--- @include parts/windows.lua
if code == ${PLAIN_ADMITTED} then return entry end
if wait > 0 then return struct.pack('>${INTEGER}B${INTEGER}', now, code, wait) end
return struct.pack('>${INTEGER}B', now, code)
