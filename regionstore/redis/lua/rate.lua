-- Exact arithmetic on rates: x tokens per per microseconds, as lease.Rate.

local LONGEST = 4503599627370496 -- 2^52, where waits saturate
local NEVER = -1

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

-- x per per in tokens per another period, rounded down: lease.Rate.In.
local function rate_in(x, per, other)
  if x <= 0 or per <= 0 or other <= 0 then return 0 end
  if per == other then return x end
  return (mint(x, per, other, 0))
end

-- Quotient and remainder of n * per / x for n < x, in base 2: x may be close
-- to 2^53, so sums are taken modulo x before they are made.
local function muldiv_wide(n, per, x)
  local product = n * per
  if product < MAX then
    local rest = math.fmod(product, x)
    return (product - rest) / x, rest
  end
  local quotient, rest = 0, 0
  local function plus(r)
    if rest >= x - r then
      rest = rest - (x - r)
      quotient = quotient + 1
    else
      rest = rest + r
    end
  end
  local unit = 4398046511104 -- 2^42
  while unit >= 1 do
    quotient = quotient * 2
    plus(rest)
    if per >= unit then
      per = per - unit
      plus(n)
    end
    unit = unit / 2
  end
  return quotient, rest
end

-- Time in which x per per with a carry makes n tokens, rounded up:
-- lease.Rate.TimeFor, at most LONGEST, or NEVER.
local function wait(x, per, n, carry)
  if n <= 0 then return 0 end
  if x <= 0 or per <= 0 then return NEVER end
  if carry < 0 or carry >= per then carry = 0 end
  local small = math.fmod(n, x)
  local whole_part = (n - small) / x * per
  if whole_part > MAX then return LONGEST end
  local quotient, rest = muldiv_wide(small, per, x)
  local over = rest - carry -- in (-per, x)
  if over > 0 then
    quotient = quotient + 1
  else
    quotient = quotient - (-over - math.fmod(-over, x)) / x
  end
  return math.min(whole_part + quotient, LONGEST)
end
