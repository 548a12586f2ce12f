--[[ Ban a subject, or end its ban. Either way its denials are counted anew.

  KEYS[1]  the tally of the subject; parts/read.lua has its layout
  ARGV     the protocol version, the number of the tally's cells, the number of denials that lead to a ban, the duration
           of the ban in microseconds (0 ends it), the milliseconds that the tally is to live at least
  Returns  the server's time, a packed integer, signed
  TTL      at least the time given
  Version  ${PROTOCOL}

  A value that is no tally is left as it is, and is an error. ]]

--- @include parts/protocol.lua

local call = redis.call
local name = KEYS[1]
local cell_bytes = ARGV[2] * ${CELL_BYTES}
local denials = ARGV[3] + 0
local duration = ARGV[4] + 0
local ttl = ARGV[5] + 0
--- @include parts/clock.lua

local since, ends, slot, slots
--- @include parts/begin_ban.lua
slots = struct.pack('>${BAN}', since, ends, slot) .. slots

local bytes = call('STRLEN', name)
local entries = (bytes - cell_bytes - #slots) / ${ENTRY_BYTES}
if bytes > 0 and (entries < 0 or entries % 1 > 0 or entries > ${LONGEST_LOG}) then
  return redis.error_reply('TALLYGATE the key of a tally holds something that is no tally: reset its subject')
elseif bytes > 0 then
  call('SETRANGE', name, cell_bytes, slots)
  if call('PTTL', name) < ttl then call('PEXPIRE', name, ttl) end
elseif duration > 0 then
  call('SET', name, string.rep('\0', cell_bytes) .. slots, 'PX', ttl)
end

return struct.pack('>${SIGNED}', now)
