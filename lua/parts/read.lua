-- Reads a tally with as few commands as possible. A tally is a string in three parts:
--   the cells  for each rule that is no sliding window, in the order of the rules: see parts/cell.lua
--   the ban    where denials lead to one: when it began, when it ends, the number of the next slot, and the slots, each
--              with the time of a denial
--   the log    the calls that the sliding windows admitted, each with its time and what it weighs
-- `head` is the cells and the ban. `tail` is the end of the log, in whole entries; the first of them may be needed only
-- for its surplus. `front` is the beginning of a log that is longer than `tail` and has calls that do not weigh 1.
-- `entries` is the number of all entries, `last` the time of the last one, and `latest` the latest
-- time in the tally. A time that is a little later than now becomes the time of this decision. A time that is much
-- later is forgotten before anything is decided, and the tally is read once more.
--
-- If the length or the first bytes of a value are wrong, or a time or a number is out of range, the value is no tally,
-- and `fault` is set. Every time is below 2^53. Text read as a time is above, because no character is less than a
-- space. In a long log, only the entries that decide are checked.
-- Reads: call, unpack, now, alone, read, name, value, want, from, ttl, cell_bytes, head_bytes, budget
-- Sets: now, value, head, tail, entries, last, latest, weighed, surplus, total, front, budget, fault
local latest
for round = 1, 2 do
  head, tail, entries, last, latest, front = '', '', 0, 0, 0, nil
  value = value or read('GETRANGE', name, from, '-1')
  if not alone and value.err or #value > 0 and #value < head_bytes then
    fault = ${UNREADABLE}
  elseif #value < want then
    if head_bytes > 0 then
      head = string.sub(value, 1, head_bytes)
      tail = string.sub(value, head_bytes + 1)
    else
      tail = value
    end
    entries = #tail / ${ENTRY_BYTES}
  else
    if head_bytes > 0 then head = call('GETRANGE', name, 0, head_bytes - 1) end
    tail = head_bytes > 0 and string.sub(value, head_bytes + 1) or value
    entries = (call('STRLEN', name) - head_bytes) / ${ENTRY_BYTES}
  end
  if entries % 1 > 0 or entries > ${LONGEST_LOG} then
    fault = ${UNREADABLE}
  elseif #tail > 0 then
    last = unpack('>${INTEGER}', tail, #tail - ${ENTRY_BYTES} + 1)
    local first = #tail == entries * ${ENTRY_BYTES} and unpack('>${INTEGER}', tail) or 0
    if first > 0 or last == 0 and entries > 1 then fault = ${UNREADABLE} end
  end
  -- Each entry of a log has two fields:
  --   time     when the call was admitted; its first bit is set if this entry or an earlier one does not weigh 1
  --   surplus  the sum of the weights up to this entry, less 1 for each entry (4 bytes, modulo 2^32)
  -- The first entry is no call: its time is 0, and the sum begins with its surplus. So in a log whose calls all weigh
  -- 1, every surplus is 0. An entry may have the time of the one before it; times never decrease. `weighed` says
  -- whether the last entry has its first bit set. If it has, `surplus` is that of the last entry, and `total`
  -- the weight of all calls.
  weighed = last >= 2 ^ 55
  surplus, total = 0, nil
  if weighed then
    local mark, rest
    mark, rest, surplus = unpack('>${ENTRY}', tail, #tail - ${ENTRY_BYTES} + 1)
    last = mark % 128 * 2 ^ 48 + rest
    if #tail < entries * ${ENTRY_BYTES} then
      -- Numbers in text, because turning a number into text takes the server as long as a short read.
      if head_bytes > 0 then
        front = call('GETRANGE', name, head_bytes, head_bytes + ${END_BYTES} - 1)
      else
        front = call('GETRANGE', name, '0', '${END_LAST}')
      end
    end
    local nothing, base = unpack('>${INTEGER}I4', front or tail)
    total = (entries - 1 + surplus - base) % 2 ^ 32
    -- The bit may be set in text, but text never begins as a log does.
    if nothing > 0 then fault = ${UNREADABLE} end
  end
  latest = last
  for cell = 1, #head > 0 and cell_bytes or 0, ${CELL_BYTES} do
    local stamp = unpack('>${INTEGER}', head, cell)
    if stamp > latest then latest = stamp end
  end
  if latest >= 2 ^ 53 then fault = ${UNREADABLE} end
  if fault then
    -- The tally is not used, so its times do not matter.
  elseif latest > now + ${STANDSTILL} and round == 1 then
    -- Forgets entries that are much later than now: they were written before the clock was set back, and would block
    -- calls for too long. One script call forgets whole tallies, at least one. After a long tally, or once the budget
    -- is spent, the caller asks again.
    if budget <= ${DROP_BYTES} then
      fault = ${ASK_AGAIN}
    else
      local kept = {}
      for cell = 1, cell_bytes, ${CELL_BYTES} do
        local past = unpack('>${INTEGER}', head, cell) <= now
        kept[#kept + 1] = past and string.sub(head, cell, cell + ${CELL_BYTES} - 1) or string.rep('\0', ${CELL_BYTES})
      end
      local horizon, beside = now, -1
      --- @include parts/search.lua
      local copied = first * ${ENTRY_BYTES} + ${DROP_BYTES}
      if copied > budget and budget < ${BUDGET_BYTES} then
        fault = ${ASK_AGAIN}
      else
        budget = budget - copied
        value = call('GETRANGE', name, 0, head_bytes + first * ${ENTRY_BYTES} - 1)
        call('SET', name, value, 'PX', ttl)
        if cell_bytes > 0 then call('SETRANGE', name, 0, table.concat(kept)) end
        value = nil
        -- After a long tally, the budget is spent.
        if budget < ${BUDGET_BYTES} / 2 then fault = ${ASK_AGAIN} end
      end
    end
  elseif latest > now + ${STANDSTILL} then
    fault = ${UNREADABLE}
  elseif latest > now then
    now = latest
  end
  if fault then head, tail, front, entries, last, latest, weighed, total = '', '', nil, 0, 0, 0, false, nil end
  if latest <= now then break end
end
