-- The head of a packed request; the fields of its first subject begin at `at`.
--   subjects  the number of its subjects (1 byte)
--   asked     what is asked (1 byte), a sum: ${REPORT} to report on every rule, ${PEEK} to charge nothing, ${PART} for a
--             part of a call, whose wait is combined with those of the others, ${DENIAL} to charge nothing and to count a
--             denial towards a ban, because another part is denied, ${PROVISIONAL} not to count a denial
--   cost      the weight of the call
-- Reads: unpack, request
-- Sets: subjects, asked, cost, at, report, peek, part, denial, provisional, charging
local subjects, asked, cost, at = unpack('>BB${INTEGER}', request)
local report = asked % ${PEEK} >= ${REPORT}
local peek = asked % ${PART} >= ${PEEK}
local part = asked % ${DENIAL} >= ${PART}
local denial = asked % ${PROVISIONAL} >= ${DENIAL}
local provisional = asked >= ${PROVISIONAL}
local charging = not peek and not denial and cost > 0
