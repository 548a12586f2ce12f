--[[ Take the place of the one call that is tried after a pause, give it back, or open the subject. A probe that lost its place
     to another one, or to a new pause, changes nothing.

  KEYS[1]  the pause; pause.lua has its layout
  ARGV     the protocol version, the name of the probe, for how many microseconds it takes the place: 0 gives it back, and -1
           opens the subject
  Returns  the server's time, and how the pause stood before, as in paused.lua: packed integers, signed. The place was taken if
           this is -2. If the subject was opened, 0, as if it had not been paused
  TTL      leaves it as pause.lua has set it
  Version  7 ]]

-- parts/protocol.lua
-- Refuses a caller of another version.
-- Reads: nothing
-- Sets: nothing
if ARGV[1] ~= '7' then
  return redis.error_reply('TALLYGATE this script speaks protocol 7, not ' .. tostring(ARGV[1]))
end

-- parts/read_pause.lua
-- Reads the pause of a subject: see pause_left.lua for how it stands.
-- Reads: nothing
-- Sets: call, unpack, name, now, value, left
local call = redis.call
local unpack = struct.unpack
local name = KEYS[1]
-- parts/clock.lua
-- The server's time.
-- Reads: call
-- Sets: clock, now
local clock = call('TIME')
local now = clock[1] * 1000000 + clock[2]
local value = call('GETRANGE', name, '0', '20')
local left = 0
if #value == 21 then
  -- parts/pause_left.lua
  -- How long the pause in `value` still lasts. For as long again after it, one call at a time is tried: then it is -2,
  -- less the time for which such a probe has the place. 0 after that, or if the clock was set back.
  -- Reads: unpack, now, value
  -- Sets: since, ends, opens, taken, left
  local since, ends, taken = unpack('>I7I7I7', value)
  local opens = ends + ends - since
  left = 0
  if since <= now + 128000 and now < ends then
    left = ends - now
  elseif since <= now and now < opens then
    left = -2 - math.max(math.min(taken, opens) - now, 0)
  end
elseif value ~= '' then
  return redis.error_reply('TALLYGATE the key of a pause holds something that is no pause: resume its subject')
end

local length = ARGV[3] + 0
if length > 0 then
  if left == -2 then
    call('SETRANGE', name, '14', struct.pack('>I7', now + length) .. ARGV[2])
  end
elseif left < 0 and call('GETRANGE', name, '21', '36') == ARGV[2] then
  if length == 0 then
    call('SETRANGE', name, '14', string.rep('\0', 7))
  else
    call('UNLINK', name)
    left = 0
  end
end
return struct.pack('>i7i7', now, left)
