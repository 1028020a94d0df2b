-- Says that budgets are in use until now + ttl; drops those whose time has long
-- been over (a clock that steps back finds the others again).
-- KEYS[1]: sorted set of budget names by the time until which they are in use.
-- ARGV: ttl, then the names. Atomic over all of them.
local ttl = number()
trim_register(KEYS[1])
while arg_at < #ARGV do
  redis.call('ZADD', KEYS[1], 'GT', whole(now + ttl), text())
end
keep_register(KEYS[1], ttl)
return {id}
