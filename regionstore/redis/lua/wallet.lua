-- The wallet's row and the pure step on it, as package regionstore has them in
-- Go: the same names, the same order, the same results. The constants
-- PROCESS_DEADLINE, PROCESS_GUARD, KEEP_MARGIN, KEEP_LOCAL and MAX_LAG come from
-- there.
--
-- A row is one string: MessagePack of an array, which the steps change in
-- place. Its fields are those of regionstore.Row, at the indices below; a row of
-- another VERSION counts as missing.

local VERSION = 1
local RESERVE, PACED, LUMP = 1, 2, 3
local OK, MISSING, STALE, DEAD, SHORT, BUSY = 1, 2, 3, 4, 5, 6
local ENDED, NOT_PLANNED = 2, 3 -- of a state; any other is active
local SPAN = PROCESS_DEADLINE + PROCESS_GUARD

local min, max = math.min, math.max

-- fields of a row; a lease of each kind stands behind them
local FORMAT, LIFE, DEMAND, NONCE = 1, 2, 3, 4
local LOCAL_X, LOCAL_PER, LOCAL_BURST = 5, 6, 7
local LOCAL_BALANCE, LOCAL_CARRY, LOCAL_MARK, LOCAL_TOTAL = 8, 9, 10, 11
local LEASES = 11

-- fields of a lease
local INC, SEQ, PENDING, ANCHOR, DEADLINE, LOST, CLOSED, OVER = 1, 2, 3, 4, 5, 6, 7, 8
local GRANTED, USED, RETURNED = 9, 10, 11
local X, PER, BETA, BALANCE, CARRY, MARK = 12, 13, 14, 15, 16, 17

-- two generations of prefetched tokens in it, each with four fields
local CUR, PREV = 18, 22
local ID, N, OPENED, STOP = 0, 1, 2, 3

-- what was sent last, in it: seq, used, returned, x, its period, beta,
-- prefetched, closed, want, regrant, granted
local SENT, SENT_USED, SENT_RETURNED, SENT_CLOSED, SENT_LAST = 26, 27, 28, 33, 36

local function new_lease(inc, lost)
  return {
    inc, 0, false, 0, 0, lost, false, false,
    0, 0, 0,
    0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, false, 0, '', 0,
  }
end

-- A lease for which nothing was ever asked is kept as three fields, which makes
-- the common row, of one lease in use, half as long.
local function shorten(l)
  if l[SEQ] > 0 or l[CLOSED] then return l end
  return {l[INC], l[LOST], l[MARK]}
end

local function lengthen(l)
  if #l > 3 then return l end
  local full = new_lease(l[1], l[2])
  full[MARK] = l[3]
  return full
end

-- the slot of a kind, nil for an invalid kind
local function lease(row, kind)
  if kind < RESERVE or kind > LUMP then return nil end
  return row[LEASES + kind]
end

-- when the row may be forgotten: KEEP_MARGIN after the last instant that
-- anything in it can matter, KEEP_LOCAL after the last admission without a lease
local function expiry(row)
  local last = row[LOCAL_MARK]
  for kind = RESERVE, LUMP do
    local l = lease(row, kind)
    last = max(last, l[ANCHOR], l[DEADLINE], l[CUR + STOP], l[PREV + STOP])
  end
  local keep = last + KEEP_MARGIN
  if row[LOCAL_TOTAL] > 0 then keep = max(keep, row[LOCAL_MARK] + KEEP_LOCAL) end
  return keep
end

-- the row at a key and its packed form; nil if there is none or its time is over
local function load(key)
  local packed = redis.call('GET', key)
  if not packed then return nil end
  local row = cmsgpack.unpack(packed)
  if row[FORMAT] ~= VERSION then return nil end
  for kind = RESERVE, LUMP do row[LEASES + kind] = lengthen(row[LEASES + kind]) end
  if now >= expiry(row) then return nil end
  return row, packed
end

-- Writes the row if it is not what it was, and leaves it unusable. Comes after
-- everything that can fail.
local function save(key, row, before)
  local ms = max(1, math.ceil((expiry(row) - now) / 1000))
  for kind = RESERVE, LUMP do row[LEASES + kind] = shorten(row[LEASES + kind]) end
  local packed = cmsgpack.pack(row)
  if packed == before then return end
  redis.call('SET', key, packed, 'PX', whole(ms))
end

-- Replies: flat arrays behind the replication id ------------------------------

local out = {id}

local function push_one(v)
  if v == true then v = 1 elseif v == false then v = 0 end
  out[#out + 1] = v
end

local function push(...)
  for i = 1, select('#', ...) do push_one((select(i, ...))) end
end

local function push_fields(t, from, to)
  for i = from, to do push_one(t[i]) end
end

-- Step ------------------------------------------------------------------------

local function current(row)
  return row and row[LIFE] == id
end

-- whether the caller has no usable bound on the clock
local function first(not_after)
  return not_after <= 0 or now > not_after + MAX_LAG
end

local function seen_by(not_after)
  if first(not_after) then return now end
  return min(now, not_after)
end

local function add(a, b)
  return min(a + b, MAX) -- a rounded sum is above MAX
end

local function is_share(kind)
  return kind ~= LUMP
end

local function dead(l)
  return l[DEADLINE] ~= 0 and now >= l[DEADLINE]
end

local function alive(l)
  return not l[CLOSED] and l[DEADLINE] ~= 0 and now < l[DEADLINE] and not l[OVER]
end

local function counted(l)
  return l[CUR + N] + l[PREV + N]
end

-- what the wallet itself holds of the lease, dead or alive
local function unspent(l, kind)
  if is_share(kind) then return l[BALANCE] end
  return l[GRANTED] - l[USED] - l[RETURNED] - counted(l)
end

local function live(l, kind)
  if not alive(l) then return 0 end
  return unspent(l, kind)
end

-- moves the end of a generation that counts tokens, later only
local function postpone(l, g, stop)
  if l[g + N] > 0 then l[g + STOP] = max(l[g + STOP], stop) end
end

-- keeps a closed share's cap at what processes still hold
local function trim(l, kind)
  if l[CLOSED] and is_share(kind) then l[BETA] = counted(l) end
end

local function age_one(l, kind, g, seen)
  if l[g + N] == 0 or seen < l[g + STOP] then return end
  if kind == LUMP then l[USED] = add(l[USED], l[g + N]) end
  l[g + N] = 0
end

-- drops the generations whose processes have all stopped
local function age(l, kind, seen)
  age_one(l, kind, CUR, seen)
  age_one(l, kind, PREV, seen)
  trim(l, kind)
end

-- adds n tokens to a bucket and drops what is above its cap
local function fill(balance, limit, n, carry)
  if n >= limit - balance then return max(limit, 0), 0 end
  return balance + n, carry
end

-- Advances a bucket from its mark to seen, and keeps room free for what another
-- caller may still mint up to the raw clock, rounded up; one that is full up to
-- the raw clock keeps no fraction. Returns balance, mark and carry.
local function mint_bucket(x, per, limit, seen, raw, balance, mark, carry)
  if seen > mark then
    local n
    n, carry = mint(x, per, seen - mark, carry)
    balance, carry = fill(balance, limit, n, carry)
    mark = seen
  end
  if raw > mark then
    local n, rest = mint(x, per, raw - mark, carry)
    if n == 0 and balance >= limit then return max(0, limit), raw, 0 end
    if n > 0 and rest > 0 then n = n + 1 end
    balance = max(0, min(balance, limit - n))
  end
  return balance, mark, carry
end

-- brings a share's balance up to what a caller has seen, its deadline at the
-- latest
local function mint_share(l, seen)
  l[BALANCE], l[MARK], l[CARRY] = mint_bucket(l[X], l[PER], l[BETA] - counted(l),
    min(seen, l[DEADLINE]), min(now, l[DEADLINE]), l[BALANCE], l[MARK], l[CARRY])
end

-- makes TIME the instant that everything counts from
local function move_marks(row)
  for kind = RESERVE, LUMP do
    local l = lease(row, kind)
    l[MARK] = max(l[MARK], now)
    postpone(l, CUR, now + SPAN)
    postpone(l, PREV, now + SPAN)
  end
  row[LOCAL_MARK] = max(row[LOCAL_MARK], now)
end

-- lets time pass on a current row; returns the instant the caller remembers
local function pass(row, not_after)
  local seen = seen_by(not_after)
  if first(not_after) then
    move_marks(row)
    return seen
  end
  for kind = RESERVE, LUMP do
    local l = lease(row, kind)
    if counted(l) > 0 then age(l, kind, seen) end
    if is_share(kind) then mint_share(l, seen) end
  end
  return seen
end

-- the lease of that kind and incarnation, nil if the row holds another
local function named(row, kind, inc)
  local l = lease(row, kind)
  if not l or inc == '' or l[INC] ~= inc then return nil end
  return l
end

-- closes the lease and moves its balance into returned
local function fence(l, kind)
  if l[CLOSED] then return end
  l[CLOSED] = true
  l[RETURNED] = add(l[RETURNED], unspent(l, kind))
  if not is_share(kind) then return end
  l[X], l[BALANCE], l[CARRY] = 0, 0, 0
  trim(l, kind)
end

-- the smallest cap whose prefetch limit covers what is counted
local function least_beta(l)
  return 4 * counted(l)
end

-- Views -----------------------------------------------------------------------

local function push_missing(not_after)
  push(MISSING, seen_by(not_after))
end

local function push_view(row, seen, outcome)
  push(outcome, seen)
  push_fields(row, DEMAND, LOCAL_TOTAL)
  for kind = RESERVE, LUMP do
    local l = lease(row, kind)
    push_fields(l, INC, SENT_LAST)
    push(live(l, kind), alive(l) and l[DEADLINE] - now or 0)
  end
end
