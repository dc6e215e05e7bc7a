-- KEYS session, meta. ARGV now, then fields as tag, op, value. Writes them if the session is live and not superseded, and gives the
-- instant, before when everybody is signed out, and the row; or the instant alone.
local key, at = KEYS[1], now()
if not is_live(key, at) or redis.call('HGET', key, 's') == '1' then return {text(at)} end
for i = 2, #ARGV, 3 do
  if ARGV[i + 1] == '1' then redis.call('HSET', key, 'f' .. ARGV[i], ARGV[i + 2]) else redis.call('HDEL', key, 'f' .. ARGV[i]) end
end
redis.call('HINCRBY', key, 'v', 1)
return {text(at), redis.call('HGET', KEYS[2], 'before') or '0', redis.call('HGET', key, 'row')}
