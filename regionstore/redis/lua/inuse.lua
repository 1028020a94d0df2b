-- Lists the budgets in use.
-- KEYS[1]: as in touch.lua.
local out = redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. whole(now), '+inf')
table.insert(out, 1, id)
return out
