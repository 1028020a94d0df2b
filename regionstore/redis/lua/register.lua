-- Registers: sorted sets of names by the time until which they count.

-- drops what has not counted for KEEP_MARGIN: whoever has to know what counts
-- compares with the clock, which may step back
local function trim_register(key)
  redis.call('ZREMRANGEBYSCORE', key, '-inf', whole(now - KEEP_MARGIN))
end

-- keeps the key for KEEP_MARGIN after the last of its names
local function keep_register(key, ttl)
  local ms = math.ceil((ttl + KEEP_MARGIN) / 1000)
  if redis.call('PTTL', key) < ms then redis.call('PEXPIRE', key, whole(ms)) end
end
