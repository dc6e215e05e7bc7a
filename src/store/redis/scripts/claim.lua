-- KEYS meta. ARGV now, a check value of the index secret, or empty to ask. The first that comes stays.
redis.call('HSETNX', KEYS[1], 'version', '1')
if ARGV[2] ~= '' then redis.call('HSETNX', KEYS[1], 'index', ARGV[2]) end
return {redis.call('HGET', KEYS[1], 'version'), redis.call('HGET', KEYS[1], 'index')}
