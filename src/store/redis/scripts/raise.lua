-- KEYS epoch, index, feed. ARGV now, where, subject, the epoch to reach (empty: one more than now). Raises the epoch, says so, and
-- gives it with the sessions in the index.
local at = now()
-- Changes nothing; after a command that frees memory a full Redis lets the rest of a script through.
redis.call('ZREM', KEYS[2], '')
local epoch = tonumber(redis.call('GET', KEYS[1]) or '0')
local wanted = ARGV[4] == '' and epoch + 1 or tonumber(ARGV[4])
if wanted > epoch then redis.call('SET', KEYS[1], text(wanted)) end
publish(KEYS[3], ARGV[2], at, '3', ARGV[3], text(wanted))
return {text(wanted), redis.call('ZRANGE', KEYS[2], 0, -1)}
