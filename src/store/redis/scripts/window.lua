-- KEYS meta, feed. ARGV now. Gives when the partition was made, and its whole feed. Writes only the first time: what a full Redis
-- refuses must not keep anybody from hearing the feed.
local at = now()
local born = redis.call('HGET', KEYS[1], 'born')
if not born then
  redis.call('HSET', KEYS[1], 'born', text(at))
  born = text(at)
end
return {text(at), born, redis.call('XRANGE', KEYS[2], '-', '+')}
