-- Search in a log. `first` is the first entry that is later than `horizon`, or, where `beside` is not negative, the
-- first after which no more than `beside` counts. `time` is its time, or nil if there is no such entry, and `weight` is
-- the weight from it on. The entry is sought at the end of the log, and then at its `front`, because entries stop
-- counting there. In between, weights add up to almost a straight line, so two guesses along that line read a few
-- entries each. Then single entries halve what is left. The longest log takes at most ${SEARCH_STEPS} pieces.
-- Reads: call, unpack, name, head_bytes, tail, front, entries, surplus, total, horizon, beside
-- Sets: first, time, weight
local first, time, weight = entries, nil, total or entries > 0 and entries - 1 or 0
do
  -- `low` is the last entry that is known to come before `first`. After `low` the log weighs `weight`, after `first` it
  -- weighs `below`.
  local low, below = 0, 0
  local sums = entries - 1 + surplus
  local piece, begin, stop = tail, entries - #tail / ${ENTRY_BYTES}, entries
  -- Most often the end begins after `first`: one look shows that.
  local middle = begin > 0 and begin or (entries - entries % 2) / 2
  for step = 1, ${SEARCH_STEPS} do
    local bottom, top = low, first
    if begin > low then bottom = begin - 1 end
    if stop < first then top = stop end
    for _ = 1, ${SEARCH_STEPS} do
      if top - bottom <= 1 then break end
      local at = (middle - begin) * ${ENTRY_BYTES}
      if beside < 0 then
        local mark, rest, sum = unpack('>${ENTRY}', piece, at + 1)
        if mark % 128 * 2 ^ 48 + rest > horizon then
          first, top = middle, middle
        else
          low, bottom, weight = middle, middle, (sums - middle - sum) % 2 ^ 32
        end
      else
        local after = (sums - middle - unpack('>I4', piece, at + ${INTEGER_BYTES} + 1)) % 2 ^ 32
        if after <= beside then
          first, top, below = middle, middle, after
        else
          low, bottom, weight = middle, middle, after
        end
      end
      middle = bottom + top
      middle = (middle - middle % 2) / 2
    end
    if first - low <= 1 then break end
    if step == 1 and front then
      piece, begin, stop = front, 0, ${END_ENTRIES}
    else
      begin, stop = low + 1, first
      if first - low > ${BLOCK_ENTRIES} then
        local near = 0
        if beside >= 0 and step <= 3 then
          middle = low + (weight - beside) / (weight - below) * (first - low)
          near = ${NEAR_A_GUESS}
        else
          middle = (low + first) / 2
        end
        middle = middle - middle % 1
        begin, stop = math.max(begin, middle - near), math.min(stop, middle + near + 1)
      end
      local from = head_bytes + begin * ${ENTRY_BYTES}
      piece = call('GETRANGE', name, from, head_bytes + stop * ${ENTRY_BYTES} - 1)
    end
    middle = (begin > low and begin - 1 or low) + (stop < first and stop or first)
    middle = (middle - middle % 2) / 2
  end
  if first < entries then
    local at = (first - begin) * ${ENTRY_BYTES}
    if first < begin or first >= stop then
      at = head_bytes + first * ${ENTRY_BYTES}
      piece, at = call('GETRANGE', name, at, at + ${INTEGER_BYTES} - 1), 0
    end
    local mark, rest = unpack('>BI${TIME_REST}', piece, at + 1)
    time = mark % 128 * 2 ^ 48 + rest
  end
end
