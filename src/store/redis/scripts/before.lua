-- KEYS meta, feed. ARGV now, where, an instant. Keeps in mind that everybody who was authenticated before it is signed out, and says so.
local at = now()
-- Changes nothing; after a command that frees memory a full Redis lets the rest of a script through.
redis.call('HDEL', KEYS[1], '')
local before = tonumber(redis.call('HGET', KEYS[1], 'before') or '0')
redis.call('HSET', KEYS[1], 'before', text(math.max(before, tonumber(ARGV[3]))))
publish(KEYS[2], ARGV[2], at, '5', '', ARGV[3])
return 1
