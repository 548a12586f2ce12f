-- Drops the hits that count in no window any more, once there may be as many of them as others. They are found by time
-- and not by count: while a new version of the policy is rolled out, the other one may allow more.
-- Reads: call, unpack, now, name, head, head_bytes, largest, reach, ttl, bytes
-- Sets: nothing
if bytes - head_bytes > 2 * largest * ${INTEGER_BYTES} then
  local log
  local total = (bytes - head_bytes) / ${INTEGER_BYTES}
  local horizon = now - reach
  --- @include parts/search.lua
  if low > 0 then
    call('SET', name, head .. call('GETRANGE', name, head_bytes + low * ${INTEGER_BYTES}, -1), 'PX', ttl)
  end
end
