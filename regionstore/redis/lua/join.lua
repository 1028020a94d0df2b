-- Says that a process lives until now + ttl, or with ttl 0 that it has left.
-- KEYS[1]: sorted set of processes by the time until which they live.
-- ARGV: process, ttl. Returns how many live.
local process, ttl = text(), number()
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', whole(now))
if ttl > 0 then
  redis.call('ZADD', KEYS[1], whole(now + ttl), process)
  local ms = math.ceil(ttl / 1000) + 60000
  if redis.call('PTTL', KEYS[1]) < ms then redis.call('PEXPIRE', KEYS[1], whole(ms)) end
else
  redis.call('ZREM', KEYS[1], process)
end
return {id, redis.call('ZCARD', KEYS[1])}
