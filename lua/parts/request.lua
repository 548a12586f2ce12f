-- The head of a packed request; the fields of its first subject begin at `at`.
--   subjects  the number of its subjects (1 byte)
--   asked     what is asked (1 byte), a sum: ${REPORT} to report on every rule, ${PEEK} to charge nothing, ${PART} for a
--             part of a call, whose wait is combined with those of the others, ${DENIAL} to charge nothing and to count a
--             denial towards a ban, because another part is denied, ${PROVISIONAL} not to count a denial, ${UNITS} where each
--             subject has a cost of its own, ${LATE} to charge the call even beyond the limits
--   cost      the weight of the call; where each subject has one, the greatest
-- Reads: unpack, request
-- Sets: subjects, asked, cost, at, report, peek, part, denial, provisional, charging, units, late
local subjects, asked, cost, at = unpack('>BB${INTEGER}', request)
local report = asked % ${PEEK} >= ${REPORT}
local peek = asked % ${PART} >= ${PEEK}
local part = asked % ${DENIAL} >= ${PART}
local denial = asked % ${PROVISIONAL} >= ${DENIAL}
local provisional = asked % ${UNITS} >= ${PROVISIONAL}
local charging = not peek and not denial and cost > 0
local units = asked >= ${UNITS} and asked % ${LATE} >= ${UNITS}
local late = asked >= ${LATE}
