-- The head of a packed request; the fields of its first subject begin at `at`.
--   subjects  the number of its subjects (1 byte)
--   asked     what is asked (1 byte): ${REPORT} to report on every rule, ${PEEK} to charge nothing, their sum for both
--   cost      the weight of the call
-- Reads: unpack, request
-- Sets: subjects, asked, cost, at, report, peek, charging
local subjects, asked, cost, at = unpack('>BB${INTEGER}', request)
local report = asked % ${PEEK} == ${REPORT}
local peek = asked >= ${PEEK}
local charging = not peek and cost > 0
