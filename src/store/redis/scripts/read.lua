-- KEYS session. ARGV now, 1 for the fields too. Gives the instant and the hash, or parts of it.
local at = text(now())
if ARGV[2] == '1' then return {at, redis.call('HGETALL', KEYS[1])} end
local found = redis.call('HMGET', KEYS[1], 'row', 'r', 'v')
if not found[1] then return {at, {}} end
return {at, {'row', found[1], 'r', found[2], 'v', found[3]}}
