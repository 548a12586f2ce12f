-- A concurrency limit. Its tally is a sorted set: the names of the leases, by the times at which they end. Each call
-- weighs 1, whatever its cost; a call that costs nothing takes no lease. The wait lasts until enough leases have ended.
-- It is only a bound: a call may end earlier, or renew its lease. A lease that ends later than any new one was taken
-- before the clock was set back, and does not count.
-- Reads: call, unpack, never, now, read, name, subject, request, at, ttl, cost, report, leases, charges
-- Sets: kind, at, room, remaining, reset, reset_charged, more, is_bound, leases, charges, fault
local count, span, id
kind, count, span, id, at = unpack('>c1${INTEGER}${INTEGER}c${LEASE_NAME_BYTES}', request, at)
local latest = now + ${LONGEST_LEASE}
local held = read('ZCOUNT', name, now + 1, latest)
if type(held) == 'table' then fault, held = ${UNREADABLE}, 0 end
if count == 0 then
  room = never
elseif held >= count then
  -- If the limit was lowered, more leases may have to end than one command passes over.
  local beyond = math.min(held - count, ${LEASES_FORGOTTEN})
  local first = call('ZRANGEBYSCORE', name, now + 1, latest, 'WITHSCORES', 'LIMIT', beyond, 1)
  room = first[2] - now
  is_bound = true
end
if report then
  remaining = count - held
  local last = held > 0 and call('ZREVRANGEBYSCORE', name, latest, now + 1, 'WITHSCORES', 'LIMIT', 0, 1)
  reset = last and last[2] - now or 0
  reset_charged = span
  more = room
  if remaining == 1 then
    -- The lease of this call may be the first to end.
    local first = held > 0 and call('ZRANGEBYSCORE', name, now + 1, latest, 'WITHSCORES', 'LIMIT', 0, 1)
    more = first and math.min(first[2] - now, span) or span
  end
end
leases = leases or {}
leases[subject] = cost > 0 and { name, id, now + span, ttl, held }
if charges then charges[subject] = {} end
