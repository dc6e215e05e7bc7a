-- What every script begins with. ARGV[1] is the instant of a test's clock in milliseconds, or empty.
local function now()
  if ARGV[1] ~= '' then return tonumber(ARGV[1]) end
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end
local function text(number) return string.format('%.0f', number) end
local function is_live(key, at)
  local u = redis.call('HGET', key, 'u')
  return u and tonumber(u) > at
end
-- Writes an entry of the feed, and says where. `where` is the channel and the partition, as `CHANNEL NN`.
local function publish(stream, where, at, kind, of, value)
  local t = redis.call('TIME')
  local made = text(t[1] * 1000000 + t[2])
  local id = redis.call('XADD', stream, '*', 'a', text(at), 'k', kind, 'o', of, 'v', value, 'm', made)
  local channel, partition = string.match(where, '^(.*) (%d+)$')
  redis.call('PUBLISH', channel, partition .. ' ' .. id)
end
-- Keeps a key at least this many milliseconds more.
local function keep(key, for_millis)
  if for_millis > redis.call('PTTL', key) then redis.call('PEXPIRE', key, text(for_millis)) end
end
