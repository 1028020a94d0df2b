-- The wallet's row and the pure step on it, as package regionstore has them in
-- Go: the same names, the same order, the same results. The constants
-- PROCESS_DEADLINE, PROCESS_GUARD, KEEP_MARGIN and MAX_LAG come from there.
--
-- A row is one string: MessagePack of {version, replication id, demand, local
-- allowance ..., three leases}. A row of another version counts as missing.

local VERSION = 1
local RESERVE, PACED, LUMP = 1, 2, 3
local OK, MISSING, STALE, DEAD, SHORT, BUSY = 1, 2, 3, 4, 5, 6
local ACTIVE, ENDED, NOT_PLANNED = 1, 2, 3
local SPAN = PROCESS_DEADLINE + PROCESS_GUARD

local min, max = math.min, math.max

-- Codec ---------------------------------------------------------------------

local function no_generation()
  return {id = 0, n = 0, opened = 0, stop = 0}
end

local function unpack_generation(p)
  if not p then return no_generation() end
  return {id = p[1], n = p[2], opened = p[3], stop = p[4]}
end

local function pack_generation(g)
  return g.id > 0 and {g.id, g.n, g.opened, g.stop}
end

local function unpack_sent(p)
  return p and {
    seq = p[1], used = p[2], returned = p[3], x = p[4], per = p[5],
    beta = p[6], prefetched = p[7], closed = p[8], want = p[9], regrant = p[10],
  }
end

local function pack_sent(s)
  return s and {
    s.seq, s.used, s.returned, s.x, s.per,
    s.beta, s.prefetched, s.closed, s.want, s.regrant,
  }
end

local function new_lease(inc, lost)
  return {
    inc = inc, seq = 0, pending = false, anchor = 0, deadline = 0,
    lost = lost, closed = false, ended = false,
    granted = 0, used = 0, returned = 0,
    x = 0, per = 0, beta = 0, balance = 0, carry = 0, mark = 0,
    cur = no_generation(), prev = no_generation(), sent = false,
  }
end

local function unpack_lease(p)
  return {
    inc = p[1], seq = p[2], pending = p[3], anchor = p[4], deadline = p[5],
    lost = p[6], closed = p[7], ended = p[8],
    granted = p[9], used = p[10], returned = p[11],
    x = p[12], per = p[13], beta = p[14], balance = p[15], carry = p[16], mark = p[17],
    cur = unpack_generation(p[18]), prev = unpack_generation(p[19]), sent = unpack_sent(p[20]),
  }
end

local function pack_lease(l)
  return {
    l.inc, l.seq, l.pending, l.anchor, l.deadline,
    l.lost, l.closed, l.ended,
    l.granted, l.used, l.returned,
    l.x, l.per, l.beta, l.balance, l.carry, l.mark,
    pack_generation(l.cur), pack_generation(l.prev), pack_sent(l.sent),
  }
end

-- when the row may be forgotten: KEEP_MARGIN after the last instant that
-- anything in it can matter
local function expiry(row)
  local last = row.mark
  for kind = RESERVE, LUMP do
    local l = row[kind]
    last = max(last, l.anchor, l.deadline, l.cur.stop, l.prev.stop)
  end
  return last + KEEP_MARGIN
end

-- the row at a key, nil if there is none or its time is over
local function load(key)
  local raw = redis.call('GET', key)
  if not raw then return nil end
  local p = cmsgpack.unpack(raw)
  if p[1] ~= VERSION then return nil end
  local row = {
    raw = raw, id = p[2], demand = p[3],
    nonce = p[4], x = p[5], per = p[6], burst = p[7],
    balance = p[8], carry = p[9], mark = p[10], total = p[11],
    unpack_lease(p[12]), unpack_lease(p[13]), unpack_lease(p[14]),
  }
  if now >= expiry(row) then return nil end
  return row
end

-- Writes the row if it changed. Comes after everything that can fail.
local function save(key, row)
  local packed = cmsgpack.pack({
    VERSION, row.id, row.demand,
    row.nonce, row.x, row.per, row.burst,
    row.balance, row.carry, row.mark, row.total,
    pack_lease(row[1]), pack_lease(row[2]), pack_lease(row[3]),
  })
  if packed == row.raw then return end
  local ms = max(1, math.ceil((expiry(row) - now) / 1000))
  redis.call('SET', key, packed, 'PX', whole(ms))
end

-- Replies: flat arrays behind the replication id ------------------------------

local out = {id}

local function push(...)
  local n = #out
  for i = 1, select('#', ...) do
    local v = select(i, ...)
    if v == true then v = 1 elseif v == false then v = 0 end
    out[n + i] = v
  end
end

local function push_sent(s)
  if not s then return push(0) end
  push(s.seq, s.used, s.returned, s.x, s.per, s.beta, s.prefetched, s.closed, s.want, s.regrant)
end

local function push_generation(g)
  push(g.id, g.n, g.opened, g.stop)
end

-- Step ------------------------------------------------------------------------

local function current(row)
  return row and row.id == id
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
  return l.deadline ~= 0 and now >= l.deadline
end

local function alive(l)
  return not l.closed and l.deadline ~= 0 and now < l.deadline and not l.ended
end

local function counted(l)
  return l.cur.n + l.prev.n
end

-- what the wallet itself holds of the lease, dead or alive
local function unspent(l, kind)
  if is_share(kind) then return l.balance end
  return l.granted - l.used - l.returned - counted(l)
end

local function live(l, kind)
  if not alive(l) then return 0 end
  return unspent(l, kind)
end

local function postpone(g, stop)
  if g.n > 0 then g.stop = max(g.stop, stop) end
end

-- keeps a closed share's cap at what processes still hold
local function trim(l, kind)
  if l.closed and is_share(kind) then l.beta = counted(l) end
end

local function age_one(l, kind, g, seen)
  if g.n == 0 or seen < g.stop then return end
  if kind == LUMP then l.used = add(l.used, g.n) end
  g.n = 0
end

-- drops the generations whose processes have all stopped
local function age(l, kind, seen)
  age_one(l, kind, l.cur, seen)
  age_one(l, kind, l.prev, seen)
  trim(l, kind)
end

-- adds n tokens to a bucket and drops what is above its cap
local function fill(balance, limit, n, carry)
  if n >= limit - balance then return max(limit, 0), 0 end
  return balance + n, carry
end

-- Advances a bucket from its mark to seen, and keeps room free for what another
-- caller may still mint up to the raw clock. Returns balance, mark and carry.
local function mint_bucket(x, per, limit, seen, raw, balance, mark, carry)
  if seen > mark then
    local n
    n, carry = mint(x, per, seen - mark, carry)
    balance, carry = fill(balance, limit, n, carry)
    mark = seen
  end
  if raw > mark then
    local n = mint(x, per, raw - mark, carry)
    balance = max(0, min(balance, limit - n))
  end
  return balance, mark, carry
end

-- brings a share's balance up to what a caller has seen, its deadline at the
-- latest
local function mint_share(l, seen)
  l.balance, l.mark, l.carry = mint_bucket(l.x, l.per, l.beta - counted(l),
    min(seen, l.deadline), min(now, l.deadline), l.balance, l.mark, l.carry)
end

-- makes TIME the instant that everything counts from
local function move_marks(row)
  for kind = RESERVE, LUMP do
    local l = row[kind]
    l.mark = max(l.mark, now)
    postpone(l.cur, now + SPAN)
    postpone(l.prev, now + SPAN)
  end
  row.mark = max(row.mark, now)
end

-- lets time pass on a current row; returns the instant the caller remembers
local function pass(row, not_after)
  local seen = seen_by(not_after)
  if first(not_after) then
    move_marks(row)
    return seen
  end
  for kind = RESERVE, LUMP do
    local l = row[kind]
    if counted(l) > 0 then age(l, kind, seen) end
    if is_share(kind) then mint_share(l, seen) end
  end
  return seen
end

-- the lease of that kind and incarnation, nil if the row holds another
local function named(row, kind, inc)
  local l = row[kind]
  if not l or inc == '' or l.inc ~= inc then return nil end
  return l
end

-- closes the lease and moves its balance into returned
local function fence(l, kind)
  if l.closed then return end
  l.closed = true
  l.returned = add(l.returned, unspent(l, kind))
  if not is_share(kind) then return end
  l.x, l.balance, l.carry = 0, 0, 0
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
  push(outcome, seen, row.demand)
  push(row.nonce, row.x, row.per, row.burst, row.balance, row.carry, row.mark, row.total)
  for kind = RESERVE, LUMP do
    local l = row[kind]
    push(l.inc, l.seq, l.pending, l.anchor, l.deadline, l.lost, l.closed, l.ended,
      l.granted, l.used, l.returned, l.x, l.per, l.beta, l.balance, l.carry, l.mark)
    push_generation(l.cur)
    push_generation(l.prev)
    push_sent(l.sent)
    push(live(l, kind), alive(l) and l.deadline - now or 0)
  end
end
