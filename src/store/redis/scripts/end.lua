-- KEYS session, feed. ARGV now, where, id, whether it ends though it has a predecessor. Ends the session and says so. Gives
-- whether it was live (0, 1) and its row; -2 if it has a predecessor that must end before it.
local key, at = KEYS[1], now()
local live = is_live(key, at)
local found = redis.call('HMGET', key, 'row', 'p')
if found[2] and found[2] ~= '' and ARGV[4] ~= '1' then return {-2, found[1]} end
redis.call('DEL', key)
publish(KEYS[2], ARGV[2], at, '1', ARGV[3], '0')
return {live and 1 or 0, found[1]}
