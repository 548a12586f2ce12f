-- Answers one request by a string, because an array takes Redis as long as a read. The fields are signed integers:
--   now          the server's time
--   code         ${ADMITTED} when admitted, else the rule that denies, counted from 0 across the subjects;
--                ${ASK_AGAIN} when the ticks are not around now: ask again with other ticks; or when the clock was set back
--                and more has to be forgotten than this call has time for: ask again;
--                ${UNREADABLE} when a tally cannot be read: ask alone for the server's error;
--                ${BANNED} when a subject is banned
--   wait         the time until the same call would be admitted: 0 when it is, ${NEVER} when it never will be
--   lapse        only for a part: the time after which a rule would not admit the call any more, or ${NEVER}
--   remaining, reset, more  for each rule, if a report was asked for and the call was decided: the greatest cost that would
--                be admitted now, the time until the rule is unused, and the time until a cost of 1 would be admitted: 0 when
--                it is, ${NEVER} when it never will be
-- Reads: never, now, alone, answers, report, part, charging, code, wait, lapse, fault, rule, reports
-- Sets: answers
local answer = struct.pack('>${SIGNED}${SIGNED}${SIGNED}', now, code, wait == never and ${NEVER} or wait)
if part then answer = answer .. struct.pack('>${SIGNED}', lapse == never and ${NEVER} or lapse) end
if report and not fault then
  for i = 1, rule do
    local of = reports[i]
    local weight, remaining, reset, reset_charged, more = of[1], of[2], of[3], of[4], of[5]
    if code == ${ADMITTED} and charging and weight > 0 then
      remaining = remaining - weight
      reset = reset_charged
    end
    -- In a forged value, the entry in the way may be over already.
    if remaining > 0 or more < 0 then more = 0 elseif more == never then more = ${NEVER} end
    answer = answer .. struct.pack('>${SIGNED}${SIGNED}${SIGNED}', remaining > 0 and remaining or 0, reset, more)
  end
end
if alone then return answer end
answers[#answers + 1] = answer
