-- Binary search: how many hits of a log of `total` hits are not later than `horizon`. The log is the string `log`;
-- without one, single hits are read from the tally.
-- Reads: call, unpack, name, head_bytes, log, total, horizon
-- Sets: low
local low = 0
do
  local high = total
  while low < high do
    local middle = math.floor((low + high) / 2)
    local before = middle * ${INTEGER_BYTES}
    local hit
    if log then
      hit = unpack('>${INTEGER}', log, before + 1)
    else
      before = head_bytes + before
      hit = unpack('>${INTEGER}', call('GETRANGE', name, before, before + ${INTEGER_BYTES} - 1))
    end
    if hit <= horizon then low = middle + 1 else high = middle end
  end
end
