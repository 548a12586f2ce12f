--[[ Ban a subject, or end its ban. Either way its denials are counted anew.

  KEYS[1]  the tally of the subject; parts/read.lua has its layout
  ARGV     the protocol version, the number of the tally's cells, the number of denials that lead to a ban, the duration
           of the ban in microseconds (0 ends it), the milliseconds that the tally is to live at least
  Returns  the server's time, a packed integer, signed
  TTL      at least the time given
  Version  7

  A value that is no tally is left as it is, and is an error. ]]

-- parts/protocol.lua
-- Refuses a caller of another version.
-- Reads: nothing
-- Sets: nothing
if ARGV[1] ~= '7' then
  return redis.error_reply('TALLYGATE this script speaks protocol 7, not ' .. tostring(ARGV[1]))
end

local call = redis.call
local name = KEYS[1]
local cell_bytes = ARGV[2] * 21
local denials = ARGV[3] + 0
local duration = ARGV[4] + 0
local ttl = ARGV[5] + 0
-- parts/clock.lua
-- The server's time.
-- Reads: call
-- Sets: clock, now
local clock = call('TIME')
local now = clock[1] * 1000000 + clock[2]

local since, ends, slot, slots
-- parts/begin_ban.lua
-- Begins a ban, and counts denials from 0. A ban whose duration is 0 ends at once.
-- Reads: now, denials, duration
-- Sets: since, ends, slot, slots
since = now
ends = now + duration
slot = 0
slots = string.rep('\0', denials * 7)
slots = struct.pack('>I7I7I7', since, ends, slot) .. slots

local bytes = call('STRLEN', name)
local entries = (bytes - cell_bytes - #slots) / 11
if bytes > 0 and (entries < 0 or entries % 1 > 0 or entries > 524288) then
  return redis.error_reply('TALLYGATE the key of a tally holds something that is no tally: reset its subject')
elseif bytes > 0 then
  call('SETRANGE', name, cell_bytes, slots)
  if call('PTTL', name) < ttl then call('PEXPIRE', name, ttl) end
elseif duration > 0 then
  call('SET', name, string.rep('\0', cell_bytes) .. slots, 'PX', ttl)
end

return struct.pack('>i7', now)
