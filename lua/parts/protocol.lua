-- Refuses a caller of another version.
-- Reads: nothing
-- Sets: nothing
if ARGV[1] ~= '${PROTOCOL}' then
  return redis.error_reply('TALLYGATE this script speaks protocol ${PROTOCOL}, not ' .. tostring(ARGV[1]))
end
