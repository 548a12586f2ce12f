-- Adds a rule to the decision. The call waits for the rule with the longest wait. The code is this rule, or the first
-- duplicate that denies the call.
-- Reads: cost, later, report, rule, kind, room, remaining, reset, reset_charged, more, wait, duplicate, reports
-- Sets: wait, code, duplicate, reports
if room > 0 then
  if room > wait then
    wait = room
    if not duplicate then code = rule end
  end
  if kind == '${DUPLICATE}' and not duplicate then
    code = rule
    duplicate = true
  end
end
if report then
  local counts_calls = kind == '${DUPLICATE}' or kind == '${CONCURRENCY}'
  local weight = later and 0 or counts_calls and math.min(cost, 1) or cost
  reports[rule + 1] = { weight, remaining, reset, reset_charged, more }
end
