-- The window of a rule is full for `due`. The rule with the longest wait denies the call, unless a duplicate denies it.
-- Reads: policy, due, code, wait, RULE
-- Sets: code, wait
if due > wait then
  wait = due
  if code == ${PLAIN_ADMITTED} or code >= string.byte(policy, -1) then code = RULE end
end
