-- The window of a rule is full for `due`. The rule with the longest wait denies the call, unless a duplicate denies it. In no
-- log, an entry is later than the last one, which is not later than now.
-- Reads: policy, due, span_RULE, code, wait, RULE
-- Sets: code, wait, last
if due > wait then
  wait = due
  if code == ${PLAIN_ADMITTED} or code >= string.byte(policy, -1) then code = RULE end
  if due > span_RULE then last = ${UNKNOWN} end
end
