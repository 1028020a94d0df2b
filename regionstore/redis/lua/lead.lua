-- Takes, renews or gives up the region's lock.
-- KEYS[1]: holder and deadline, packed. ARGV: holder, ttl (0 gives it up).
-- Returns 1 if the holder has it afterwards. The deadline stands in the value
-- and the key outlives it a little, so that the clock that counts is the
-- script's.
local me, ttl = text(), number()
local holder, deadline = '', 0
local packed = redis.call('GET', KEYS[1])
if packed then
  local lock = cmsgpack.unpack(packed)
  holder, deadline = lock[1], lock[2]
end
if ttl <= 0 then
  if holder == me then redis.call('DEL', KEYS[1]) end
  return {id, 0}
end
if holder ~= me and deadline > now then return {id, 0} end
redis.call('SET', KEYS[1], cmsgpack.pack({me, now + ttl}), 'PX', whole(math.ceil((ttl + KEEP_MARGIN) / 1000)))
return {id, 1}
