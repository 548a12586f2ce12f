-- The decision, once all rules were asked. A call of a banned subject waits for the end of the ban and for the rules,
-- whichever takes longer.
-- Reads: never, wait, lapse, banned, fault
-- Sets: code, wait
if banned > 0 then
  code = ${BANNED}
  wait = math.max(wait, banned)
end
if wait >= lapse then wait = never end
if fault then
  code = fault
  wait = 0
end
