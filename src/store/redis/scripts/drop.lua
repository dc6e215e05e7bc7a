-- KEYS session. ARGV now, an epoch. Removes the session without a word if it began in an earlier one; the epoch's own entry tells of
-- it. Gives 1 if it was live and not superseded, 0 if not, 2 if it stays.
local key, at = KEYS[1], now()
local e = redis.call('HGET', key, 'e')
if e and tonumber(e) >= tonumber(ARGV[2]) then return 2 end
local counts = is_live(key, at) and redis.call('HGET', key, 's') ~= '1'
redis.call('DEL', key)
return counts and 1 or 0
