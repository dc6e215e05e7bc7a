-- KEYS meta, feed. ARGV now, window. Drops what is older than the largest window that anybody purges with, a bounded number of
-- entries at a time. Gives 1 if there may be more.
local at = now()
local known = tonumber(redis.call('HGET', KEYS[1], 'window') or '0')
local window = math.max(tonumber(ARGV[2]), known)
local entries = redis.call('XRANGE', KEYS[2], '-', '+', 'COUNT', 500)
local old = {}
for _, entry in ipairs(entries) do
  local fields = entry[2]
  for i = 1, #fields, 2 do
    if fields[i] == 'a' and tonumber(fields[i + 1]) + window < at then old[#old + 1] = entry[1] end
  end
end
if #old > 0 then redis.call('XDEL', KEYS[2], unpack(old)) end
-- Last, and only if it is news: a full Redis refuses it.
if window > known then redis.call('HSET', KEYS[1], 'window', text(window)) end
return #old == 500 and 1 or 0
