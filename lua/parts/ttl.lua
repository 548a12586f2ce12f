-- The TTL of a tally, once a call needs it.
-- Reads: unpack, policy, behind, ttl
-- Sets: ttl
ttl = ttl or unpack('>s', policy, behind + ${TERMS_BYTES})
