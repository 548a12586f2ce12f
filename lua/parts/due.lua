-- The window of a rule is full for `due`. The rule with the longest wait denies the call, unless a duplicate denies it.
-- No entry of a log is later than now, so if the wait is longer than the window, the value is no log.
-- Reads: policy, due, span_RULE, code, wait, RULE
-- Sets: code, wait, last
if due > wait then
  wait = due
  if code == ${PLAIN_ADMITTED} or code >= string.byte(policy, -1) then code = RULE end
  if due > span_RULE then last = ${UNKNOWN} end
end
