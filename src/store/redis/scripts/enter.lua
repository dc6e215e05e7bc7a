-- KEYS epoch, index. ARGV now, id, its end, how long to keep it beyond. Enters a session that is about to be written into the index
-- of its user, and gives the epoch it begins in.
local at = now()
-- First what wants memory, so that a full Redis refuses it.
redis.call('ZADD', KEYS[2], ARGV[3], ARGV[2])
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', '(' .. text(at))
keep(KEYS[2], math.max(tonumber(ARGV[3]) - at, 0) + tonumber(ARGV[4]))
return redis.call('GET', KEYS[1]) or '0'
