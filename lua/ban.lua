--[[ Ban a subject, or end its ban. Either way its denials are counted anew.

  KEYS[1]  the tally of the subject: see decide.lua
  ARGV     protocol version, the number of the tally's cells, the number of denials that lead to a ban, how long the ban
           is to last in microseconds (0 ends it), the milliseconds that the tally is to live at least
  Returns  now, as decide.lua does
  TTL      at least the time given; what is no tally is left as it is, and that is an error
  Version  4, together with decide.lua ]]

if ARGV[1] ~= '4' then
  return redis.error_reply('TALLYGATE this script speaks protocol 4, not ' .. tostring(ARGV[1]))
end

local call, name = redis.call, KEYS[1]
local cell_bytes, denials, duration, ttl = ARGV[2] * 21, ARGV[3] + 0, ARGV[4] + 0, ARGV[5] + 0

local clock = call('TIME')
local now = clock[1] * 1000000 + clock[2]

local since, ends = 0, 0
if duration > 0 then since, ends = now, now + duration end
local slots = struct.pack('>I7I7I7', since, ends, 0) .. string.rep('\0', 7 * denials)

local bytes = call('STRLEN', name)
if bytes % 7 > 0 or bytes > 0 and bytes < cell_bytes + #slots then
  return redis.error_reply('TALLYGATE the key of a tally holds something that is no tally')
elseif bytes > 0 then
  call('SETRANGE', name, cell_bytes, slots)
  if call('PTTL', name) < ttl then call('PEXPIRE', name, ARGV[5]) end
elseif duration > 0 then
  call('SET', name, string.rep('\0', cell_bytes) .. slots, 'PX', ARGV[5])
end

return struct.pack('>i7', now)
