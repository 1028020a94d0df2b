-- Shared by every step of the wallet; each file of a step follows it in one
-- script. Times and durations are whole microseconds, tokens whole numbers;
-- all of them below 2^53, where doubles are exact.
--
-- ARGV[1], ARGV[2]: the time and the replication id to use instead of the
-- server's own. Both are empty in production.

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
  return string.match(info, '\nmaster_replid:(%x+)')
end

local function whole(n)
  return string.format('%.0f', n)
end

-- floor(n * x / per) and the remainder for n * x + carry, without any product
-- at or above 2^53: per < 2^42, and n is taken in digits of base 1024.
-- Needs x < per and carry < per.
local function muldiv_small(n, x, carry, per)
  local product = n * x
  if product + carry < MAX then
    product = product + carry
    local rest = math.fmod(product, per)
    return (product - rest) / per, rest
  end
  local quotient, rest = 0, 0
  local unit = 1125899906842624 -- 1024^5
  while unit >= 1 do
    local digit = math.floor(n / unit)
    n = n - digit * unit
    local v = rest * 1024 + digit * x
    rest = math.fmod(v, per)
    quotient = quotient * 1024 + (v - rest) / per
    unit = unit / 1024
  end
  local v = rest + carry
  rest = math.fmod(v, per)
  return quotient + (v - rest) / per, rest
end

-- Whole tokens that x per per makes in elapsed, and the carry: exactly
-- lease.Rate.Mint. Saturates at MAX with the carry dropped.
local function mint(x, per, elapsed, carry)
  if x <= 0 or per <= 0 then return 0, 0 end
  if carry < 0 or carry >= per then carry = 0 end
  if elapsed <= 0 then return 0, carry end
  local small = math.fmod(x, per)
  local whole_part = (x - small) / per * elapsed
  if whole_part > MAX then return MAX, 0 end
  local n, rest = muldiv_small(elapsed, small, carry, per)
  n = n + whole_part
  if n > MAX then return MAX, 0 end
  return n, rest
end
