-- Binary search in a log. `first` is the first entry that is later than `horizon`, or after which no more than `beside`
-- counts. `time` is its time, or nil if there is no such entry, and `weight` is the weight from it on. The log is read
-- from the server in small pieces, until the rest is small enough to be read at once. `pieces` keeps them, because the
-- searches of several windows begin alike. The longest log takes ${SEARCH_STEPS} steps.
-- Reads: call, unpack, name, head_bytes, tail, entries, surplus, base, horizon, beside, pieces
-- Sets: first, time, weight, pieces
local first, time, weight = entries, nil, nil
do
  local low, before = 0, base
  local block, begin = tail, entries - #tail / ${ENTRY_BYTES}
  local middle = begin > 0 and begin or math.floor(first / 2)
  for _ = 1, ${SEARCH_STEPS} do
    if first - low <= 1 then break end
    if middle < begin and first - low <= ${BLOCK_ENTRIES} then
      begin = low
      local from = head_bytes + low * ${ENTRY_BYTES}
      block = call('GETRANGE', name, from, head_bytes + first * ${ENTRY_BYTES} - 1)
    end
    local piece, at = block, (middle - begin) * ${ENTRY_BYTES}
    if middle < begin then
      pieces = pieces or {}
      piece, at = pieces[middle], 0
      if not piece then
        local from = head_bytes + middle * ${ENTRY_BYTES}
        piece = call('GETRANGE', name, from, from + ${ENTRY_BYTES} - 1)
        pieces[middle] = piece
      end
    end
    local mark, rest, sum = unpack('>${ENTRY}', piece, at + 1)
    local hit = mark % 128 * 2 ^ 48 + rest
    if hit > horizon or (entries - 1 - middle + surplus - sum) % 2 ^ 32 <= beside then
      first, time = middle, hit
    else
      low, before = middle, sum
    end
    middle = math.floor((low + first) / 2)
  end
  weight = (entries - first + surplus - before) % 2 ^ 32
end
