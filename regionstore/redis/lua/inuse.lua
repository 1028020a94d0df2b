-- Lists the budgets in use.
-- KEYS[1]: as in touch.lua.
local id = replication_id()
if not id then return redis.error_reply('READONLY this redis is a replica') end
local out = redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. whole(server_time()), '+inf')
table.insert(out, 1, id)
return out
