-- Says that budgets are in use until now + ttl; drops those whose time has long
-- been over (a clock that steps back finds the others again).
-- KEYS[1]: sorted set of budget names by the time until which they are in use.
-- ARGV: ttl, then 1 to 3,900 names: they are added in one call, whose arguments all
-- lie on Lua's stack, and which takes a fraction of the time of one for each. Atomic
-- over all of them.
local ttl = number()
trim_register(KEYS[1])
local until_then, add = whole(now + ttl), {}
while arg_at < #ARGV do
  add[#add + 1] = until_then
  add[#add + 1] = text()
end
redis.call('ZADD', KEYS[1], 'GT', unpack(add))
keep_register(KEYS[1], ttl)
return {id}
