-- The wallet's row and the pure step on it, as package regionstore has them in
-- Go: the same names, the same order, the same results. The constants
-- PROCESS_DEADLINE, LONGEST_DEADLINE, PROCESS_GUARD, KEEP_MARGIN, KEEP_LOCAL and
-- MAX_LAG come from there. What only some steps need stands in view.lua: a script
-- pays for every function in it each time it runs.
--
-- A run does one step or several, one after another: each.lua, which stands last,
-- calls step for each, which reads its own arguments and appends its answer.
--
-- A row is one string: a head and a lease of each kind, packed field by field.
-- One of another VERSION counts as missing.

local out = {id}
local key_at = 0

-- the step's own i-th key
local function key(i)
  return KEYS[key_at + i]
end

local VERSION = 3
local RESERVE, PACED, LUMP = 1, 2, 3
local OK, MISSING, STALE, DEAD, SHORT, BUSY = 1, 2, 3, 4, 5, 6
local ENDED, NOT_PLANNED = 2, 3 -- of a state; any other is active

local min, max = math.min, math.max
local pack, unpack_at, byte, sub = struct.pack, struct.unpack, string.byte, string.sub

-- Fields of a row; a lease of each kind stands behind them. LIFE is as much of
-- the replication id as tells lives apart, LOCAL the local bucket's five
-- numbers, packed, '' while they are 0.
local LIFE, NONCE, DEMAND, LOCAL_MARK, LOCAL_TOTAL, LOCAL = 1, 2, 3, 4, 5, 6
local LEASES = 6
local HEAD = '>Bssi7i7i7'
local life = sub(id, 1, 20)

-- Fields of a lease, in the order in which they are packed. SENT is what was
-- sent last, packed, '' before that; begin.lua lists it.
local INC, LOST, PENDING, CLOSED, OVER = 1, 2, 3, 4, 5
local SEQ, ANCHOR, DEADLINE, GRANTED, USED, RETURNED, MARK = 6, 7, 8, 9, 10, 11, 12
local CUR, PREV = 13, 17 -- two generations of prefetched tokens, four fields each
local ID, N, OPENED, STOP = 0, 1, 2, 3
local X, PER, BETA, BALANCE, CARRY = 21, 22, 23, 24, 25 -- 0 for a lump
local SENT = 26

-- A packed lease begins with its form. IDLE is one for which nothing was ever
-- asked, UNBORN one that was asked for and never granted, FRESH a lump of which
-- no process ever took ahead: they lack what is 0 then, and the common row, of
-- one lump in use, is a third of what it were.
local IDLE, WHOLE, UNBORN, FRESH = 0, 1, 2, 3
local PLAIN = '>ssBBBi5i7i7i7i7i7i7'
local COMMON = PLAIN .. 'i5i7i7i7i5i7i7i7'
local SHARE_FORM, LUMP_FORM, IDLE_FORM, UNBORN_FORM = COMMON .. 'i7i7i7i7i7', COMMON .. 'bbbbb', '>Bssi7', '>BssBi5i7i7'

local function new_lease(inc, lost, mark)
  return {
    inc, lost, false, false, false,
    0, 0, 0, 0, 0, 0, mark,
    0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, '',
  }
end

-- whether nothing was ever asked for the lease
local function idle(l)
  return l[SEQ] == 0 and not l[CLOSED]
end

-- when the row may be forgotten: KEEP_MARGIN after the last instant that
-- anything in it can matter, KEEP_LOCAL after the last admission without a lease
local function expiry(row)
  local last = row[LOCAL_MARK]
  for kind = RESERVE, LUMP do
    local l = row[LEASES + kind]
    if not idle(l) then last = max(last, l[ANCHOR], l[DEADLINE], l[CUR + STOP], l[PREV + STOP]) end
  end
  local keep = last + KEEP_MARGIN
  if row[LOCAL_TOTAL] > 0 then keep = max(keep, row[LOCAL_MARK] + KEEP_LOCAL) end
  return keep
end

-- the text at a position behind its length in one byte, and what is behind it
local function text_at(packed, at)
  local stop = at + byte(packed, at)
  return sub(packed, at + 1, stop), stop + 1
end

-- An incarnation that begins like the row's nonce, as those do that were made
-- with it, is packed as its last character behind a one.
local function shorten(inc, nonce)
  if #inc > 1 and sub(inc, 1, -2) == sub(nonce, 1, -2) then return '\1' .. sub(inc, -1) end
  return inc
end

local function lengthen(inc, nonce)
  if byte(inc) == 1 then return sub(nonce, 1, -2) .. sub(inc, 2) end
  return inc
end

local function unborn_at(packed, at)
  local _, inc, lost, pending, seq, anchor, mark, behind = unpack_at(UNBORN_FORM, packed, at)
  local l = new_lease(inc, lost, mark)
  l[PENDING], l[SEQ], l[ANCHOR] = pending == 1, seq, anchor
  return l, behind
end

local function fresh_at(packed, at)
  local l = {unpack_at(PLAIN, packed, at)}
  local behind = l[CUR]
  for i = CUR, CARRY do l[i] = 0 end
  return l, behind
end

local function whole_at(packed, at, kind)
  local l = {unpack_at(kind == LUMP and LUMP_FORM or SHARE_FORM, packed, at)}
  return l, l[SENT]
end

local function lease_at(packed, at, kind, nonce)
  local form, l = byte(packed, at), nil
  if form == IDLE then
    local _, inc, lost, mark, behind = unpack_at(IDLE_FORM, packed, at)
    return new_lease(lengthen(inc, nonce), lost, mark), behind
  elseif form == UNBORN then
    l, at = unborn_at(packed, at)
  else
    if form == FRESH then l, at = fresh_at(packed, at + 1) else l, at = whole_at(packed, at + 1, kind) end
    l[PENDING], l[CLOSED], l[OVER] = l[PENDING] == 1, l[CLOSED] == 1, l[OVER] == 1
  end
  l[INC] = lengthen(l[INC], nonce)
  l[SENT], at = text_at(packed, at)
  return l, at
end

-- the row at a key and its packed form; nil if there is none or its time is over
local function load(at_key)
  local packed = redis.call('GET', at_key)
  if not packed or byte(packed) ~= VERSION then return nil end
  local _, at
  local row = {'', '', 0, 0, 0, '', 0, 0, 0}
  _, row[LIFE], row[NONCE], row[DEMAND], row[LOCAL_MARK], row[LOCAL_TOTAL], at = unpack_at(HEAD, packed)
  row[LOCAL], at = text_at(packed, at)
  for kind = RESERVE, LUMP do row[LEASES + kind], at = lease_at(packed, at, kind, row[NONCE]) end
  if now >= expiry(row) then return nil end
  return row, packed
end

local function pack_lease(l, kind, nonce)
  local inc = shorten(l[INC], nonce)
  if idle(l) then return pack(IDLE_FORM, IDLE, inc, l[LOST], l[MARK]) end
  local behind = pack('B', #l[SENT]) .. l[SENT]
  local pending = l[PENDING] and 1 or 0
  if l[DEADLINE] == 0 and not l[CLOSED] and not l[OVER] then
    return pack(UNBORN_FORM, UNBORN, inc, l[LOST], pending, l[SEQ], l[ANCHOR], l[MARK]) .. behind
  end
  l[INC], l[PENDING], l[CLOSED], l[OVER] = inc, pending, l[CLOSED] and 1 or 0, l[OVER] and 1 or 0
  if kind == LUMP and l[CUR + ID] == 0 then return '\3' .. pack(PLAIN, unpack(l, INC, MARK)) .. behind end
  return '\1' .. pack(kind == LUMP and LUMP_FORM or SHARE_FORM, unpack(l, INC, CARRY)) .. behind
end

-- Writes the row if it is not what it was, and leaves it unusable. Comes after
-- everything that can fail.
local function save(at_key, row, before)
  local ms = max(1, math.ceil((expiry(row) - now) / 1000))
  local packed = pack(HEAD, VERSION, row[LIFE], row[NONCE], row[DEMAND], row[LOCAL_MARK], row[LOCAL_TOTAL])
    .. pack('B', #row[LOCAL]) .. row[LOCAL]
    .. pack_lease(row[LEASES + RESERVE], RESERVE, row[NONCE])
    .. pack_lease(row[LEASES + PACED], PACED, row[NONCE])
    .. pack_lease(row[LEASES + LUMP], LUMP, row[NONCE])
  if packed ~= before then redis.call('SET', at_key, packed, 'PX', whole(ms)) end
end

-- Step ------------------------------------------------------------------------

local function current(row)
  return row and row[LIFE] == life
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

local function alive(l)
  return not l[CLOSED] and l[DEADLINE] ~= 0 and now < l[DEADLINE] and not l[OVER]
end

local function counted(l)
  return l[CUR + N] + l[PREV + N]
end

-- what the wallet itself holds of the lease, dead or alive
local function unspent(l, kind)
  if kind ~= LUMP then return l[BALANCE] end
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
  if l[CLOSED] and kind ~= LUMP then l[BETA] = counted(l) end
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
    local l = row[LEASES + kind]
    l[MARK] = max(l[MARK], now)
    postpone(l, CUR, now + LONGEST_DEADLINE + PROCESS_GUARD)
    postpone(l, PREV, now + LONGEST_DEADLINE + PROCESS_GUARD)
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
    local l = row[LEASES + kind]
    if l[DEADLINE] ~= 0 then
      if counted(l) > 0 then age(l, kind, seen) end
      if kind ~= LUMP then mint_share(l, seen) end
    end
  end
  return seen
end
