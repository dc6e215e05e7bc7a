-- KEYS epoch, index. ARGV now. Gives the epoch of a user and the sessions in the index that can still be live.
return {redis.call('GET', KEYS[1]) or '0', redis.call('ZRANGEBYSCORE', KEYS[2], text(now()), '+inf')}
