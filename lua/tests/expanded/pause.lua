--[[ Pause a subject, or ask for its pause. A pause that ends later stays as it is, so that sending this again changes nothing.

  KEYS[1]  the pause: the times when it began, when it ends, and until when a probe has the place (each a packed integer), the
           name of that probe in 16 bytes, and then a text that says who set it. A pause that prolongs a
           longer one is written as if it had begun so early that it lasts as long
  ARGV     the protocol version, the duration of the pause in microseconds (0 only asks), the longest duration of a pause, the
           text
  Returns  the server's time, and for how long the subject is paused, or how its probe stands, as in paused.lua: packed
           integers, signed; and if it only asks, the text, at most 64 bytes of it
  TTL      until the pause has been over for as long as it lasts
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

local length = ARGV[2] + 0
if length > 0 then
  local longest = ARGV[3] + 0
  local lasts = math.max(length, math.min(left, longest))
  if lasts ~= left then
    -- For how long one call at a time is tried after it. This gets no shorter if a pause is prolonged.
    local again = lasts
    if left > 0 then
      local since, ends = unpack('>I7I7', value)
      again = math.max(lasts, math.min(ends - since, longest))
    end
    local free = string.rep('\0', 16)
    local ttl = math.ceil((lasts + again) / 1000)
    call('SET', name, struct.pack('>I7I7I7', now + lasts - again, now + lasts, 0) .. free .. ARGV[4], 'PX', ttl)
    left = lasts
  end
end
local source = length == 0 and call('GETRANGE', name, '37', '100') or ''
return struct.pack('>i7i7', now, left) .. source
