-- Adds weight to a cell (`given_back` is negative), so that at most `most_left` is left of its rule. It is 0 for any other rule,
-- and for a rule that would count it for longer than twice the time until the reset. The slot before of a sliding counter fades.
-- If a call of that slot added something to it, the same number would add more a moment later.
-- Reads: unpack, request, at, now, admitted, kind, count, span, stamp, amount, before, number, leaving, most_left, reset_after_us
-- Sets: given_back, at, stamp, amount, before
given_back = 0
if number == leaving then
  local rest, stored_stamp, stored_amount, stored_before = at, stamp, amount, before
  local never, cost, later, report, lapse, fault = 1 / 0, 0, false, true, 1 / 0, nil
  local room, remaining, reset, reset_charged, more = 0, 0, 0, 0, 0
  if kind == '${FIXED_WINDOW}' then
    --- @include parts/fixed_window.lua
  elseif kind == '${CRON}' then
    --- @include parts/cron.lua
  elseif kind == '${SLIDING_COUNTER}' then
    --- @include parts/sliding_counter.lua
  else
    --- @include parts/token_bucket.lua
    reset_charged = math.min(math.ceil((full - level + (remaining - most_left) * span) / count), reset_after)
  end
  if (kind ~= '${SLIDING_COUNTER}' or stamp <= admitted) and reset_charged <= 2 * reset_after_us then
    given_back = math.min(most_left - remaining, 0)
  end
  at, stamp, amount, before = rest, stored_stamp, stored_amount, stored_before
end
