-- Answers one request, by a string: an array takes Redis as long as a read. Its fields are signed integers:
--   now          the server's time
--   code         ${ADMITTED} when admitted, else the rule that denies, counted from 0 across the subjects;
--                ${STALE_TICKS} when the ticks are not around now: ask again with others;
--                ${UNREADABLE} when a tally cannot be read: ask alone for the server's error;
--                ${BANNED} when a subject is banned
--   wait         the time until the same call would be admitted: 0 when it is, ${NEVER} when it never will be
--   remaining, reset  only if a report was asked for and the call was decided, once per rule: the greatest cost that
--                would be admitted now, and the time until the rule is as if it had never counted
-- Reads: never, now, alone, answers, report, charging, code, wait, fault, rule, reports
-- Sets: answers
local answer = struct.pack('>${SIGNED}${SIGNED}${SIGNED}', now, code, wait == never and ${NEVER} or wait)
if report and not fault then
  for i = 1, rule do
    local weight, remaining, reset, reset_charged = reports[i][1], reports[i][2], reports[i][3], reports[i][4]
    if code == ${ADMITTED} and charging then
      remaining = remaining - weight
      reset = reset_charged
    end
    answer = answer .. struct.pack('>${SIGNED}${SIGNED}', remaining > 0 and remaining or 0, reset)
  end
end
if alone then return answer end
answers[#answers + 1] = answer
