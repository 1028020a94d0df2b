-- Says that budgets are in use until now + ttl; drops those whose time is over.
-- KEYS[1]: sorted set of budget names by the time until which they are in use.
-- ARGV: ttl, then the names. Atomic over all of them.
local ttl = number()
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', whole(now))
while arg_at < #ARGV do
  redis.call('ZADD', KEYS[1], 'GT', whole(now + ttl), text())
end
local ms = math.ceil(ttl / 1000) + 60000
if redis.call('PTTL', KEYS[1]) < ms then redis.call('PEXPIRE', KEYS[1], whole(ms)) end
return {id}
