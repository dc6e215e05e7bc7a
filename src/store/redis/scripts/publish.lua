-- KEYS feed. ARGV now, where, then kind, of, value ….
local at = now()
-- Changes nothing; after a command that frees memory a full Redis lets the rest of a script through.
redis.call('XDEL', KEYS[1], '0-1')
for i = 3, #ARGV, 3 do publish(KEYS[1], ARGV[2], at, ARGV[i], ARGV[i + 1], ARGV[i + 2]) end
return 1
