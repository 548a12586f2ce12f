-- The window of a rule is full until `due`: a call that has to wait for it longer than for others is denied by it, unless a
-- duplicate denies it.
-- Reads: policy, due, code, wait, RULE
-- Sets: code, wait
if due > wait then
  wait = due
  if code == ${PLAIN_ADMITTED} or code >= string.byte(policy, -1) then code = RULE end
end
