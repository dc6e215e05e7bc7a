-- KEYS session, feed. ARGV now, where, r and v as they must be (r empty: there must be no session; v empty: any), row, until,
-- superseded, predecessor, how long to keep it beyond, count of news, epoch, a name of this very write, the news as kind, of, value …, then fields as tag, op, value.
-- Gives 1, or 0 if it is not as it must be.
local key, at = KEYS[1], now()
if ARGV[3] == '' then
  -- Its own name is there: this very write was sent twice.
  if is_live(key, at) then return redis.call('HGET', key, 'w') == ARGV[12] and 1 or 0 end
  -- Only what is over and still there: a full Redis is to refuse a new session at the first command that wants memory.
  if redis.call('EXISTS', key) == 1 then redis.call('DEL', key) end
else
  if not is_live(key, at) then return 0 end
  if redis.call('HGET', key, 'r') ~= ARGV[3] then return redis.call('HGET', key, 'w') == ARGV[12] and 1 or 0 end
  if ARGV[4] ~= '' and redis.call('HGET', key, 'v') ~= ARGV[4] then return 0 end
end
-- Changes nothing; after it a full Redis lets a renewal through, which takes no more room than what was there.
if ARGV[3] ~= '' then redis.call('HDEL', key, '') end
redis.call('HSET', key, 'row', ARGV[5], 'u', ARGV[6], 's', ARGV[7], 'p', ARGV[8], 'e', ARGV[11], 'w', ARGV[12])
redis.call('HINCRBY', key, 'r', 1)
redis.call('HINCRBY', key, 'v', 1)
local next = 13
for _ = 1, tonumber(ARGV[10]) do
  publish(KEYS[2], ARGV[2], at, ARGV[next], ARGV[next + 1], ARGV[next + 2])
  next = next + 3
end
for i = next, #ARGV, 3 do
  if ARGV[i + 1] == '1' then redis.call('HSET', key, 'f' .. ARGV[i], ARGV[i + 2]) else redis.call('HDEL', key, 'f' .. ARGV[i]) end
end
redis.call('PEXPIRE', key, text(math.max(tonumber(ARGV[6]) - at, 0) + tonumber(ARGV[9])))
return 1
