-- Says that a process lives until now + ttl, or with ttl 0 that it has left.
-- KEYS[1]: sorted set of processes by the time until which they live.
-- ARGV: process, ttl. Returns how many live.
local process, ttl = text(), number()
trim_register(KEYS[1])
if ttl > 0 then
  redis.call('ZADD', KEYS[1], whole(now + ttl), process)
  keep_register(KEYS[1], ttl)
else
  redis.call('ZREM', KEYS[1], process)
end
return {id, redis.call('ZCOUNT', KEYS[1], '(' .. whole(now), '+inf')}
