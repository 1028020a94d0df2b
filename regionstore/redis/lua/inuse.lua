-- Lists the budgets in use, or those whose time ended within the last so long.
-- KEYS[1]: as in touch.lua. ARGV: how long, 0 for those in use.
local within = number()
local from, to = '(' .. whole(now), '+inf'
if within > 0 then from, to = '(' .. whole(now - within), whole(now) end
local out = redis.call('ZRANGEBYSCORE', KEYS[1], from, to)
table.insert(out, 1, id)
return out
