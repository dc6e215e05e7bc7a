-- KEYS session, meta. ARGV now, 1 for the fields too. Gives the instant, before when everybody is signed out, and the hash or parts of it.
local at = text(now())
local before = redis.call('HGET', KEYS[2], 'before') or '0'
if ARGV[2] == '1' then return {at, before, redis.call('HGETALL', KEYS[1])} end
local found = redis.call('HMGET', KEYS[1], 'row', 'r', 'v')
if not found[1] then return {at, before, {}} end
return {at, before, {'row', found[1], 'r', found[2], 'v', found[3]}}
