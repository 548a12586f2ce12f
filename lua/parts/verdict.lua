-- The decision, once all rules were asked. A call of a banned subject waits for the end of the ban and for the rules,
-- whichever takes longer. A wait that ends after a rule lapses never ends. That is not known of a part, before the other
-- parts are decided, nor of a wait that is only an upper bound.
-- Reads: never, part, wait, lapse, banned, fault, is_bound
-- Sets: code, wait
if banned > 0 then
  code = ${BANNED}
  wait = math.max(wait, banned)
end
if not part and not is_bound and wait >= lapse then wait = never end
if fault then
  code = fault
  wait = 0
end
