-- KEYS meta, feed. ARGV now. Gives when the partition was made, and its whole feed.
local at = now()
redis.call('HSETNX', KEYS[1], 'born', text(at))
return {text(at), redis.call('HGET', KEYS[1], 'born'), redis.call('XRANGE', KEYS[2], '-', '+')}
