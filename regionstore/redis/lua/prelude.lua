-- Shared by every script: a step's file follows it. Times and durations are
-- whole microseconds, tokens whole numbers; all of them below 2^53, where
-- doubles are exact.
--
-- ARGV[1], ARGV[2]: the time and the replication id to use instead of the
-- server's own. Both are empty in production, save for the id where scripts
-- may not read it.

local MAX = 9007199254740991 -- 2^53 - 1

local arg_at = 2

-- next argument, as text or as a number
local function text()
  arg_at = arg_at + 1
  return ARGV[arg_at]
end

local function number()
  return tonumber(text())
end

local function flag()
  return text() == '1'
end

-- TIME of the server
local function server_time()
  if ARGV[1] ~= '' then return tonumber(ARGV[1]) end
  local t = redis.call('TIME')
  return t[1] * 1000000 + t[2]
end

-- The primary's replication id, from exactly that line: master_replid2 holds
-- the old one after a promotion. Nil on a replica.
local function replication_id()
  if ARGV[2] ~= '' then return ARGV[2] end
  local info = redis.call('INFO', 'replication')
  if not string.find(info, 'role:master\r\n', 1, true) then return nil end
  local _, at = string.find(info, '\nmaster_replid:', 1, true)
  if not at then return nil end
  local stop = string.find(info, '\r', at, true)
  return string.sub(info, at + 1, stop - 1)
end

local function whole(n)
  return string.format('%.0f', n)
end

-- this life of this primary, and its clock as it stands
local id = replication_id()
if not id then return redis.error_reply('READONLY this redis is a replica') end
local now = server_time()
