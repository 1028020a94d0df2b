-- What the steps beside take.lua share, behind wallet.lua.

-- Replies: flat arrays behind the replication id ------------------------------

local function push_one(v)
  if v == true then v = 1 elseif v == false then v = 0 end
  out[#out + 1] = v
end

local function push(...)
  for i = 1, select('#', ...) do push_one((select(i, ...))) end
end

-- the slot of a kind, nil for an invalid kind
local function lease(row, kind)
  if kind < RESERVE or kind > LUMP then return nil end
  return row[LEASES + kind]
end

local function is_share(kind)
  return kind ~= LUMP
end

local function dead(l)
  return l[DEADLINE] ~= 0 and now >= l[DEADLINE]
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

-- the local bucket: rate, its period, burst, balance, carry
local function bucket(row)
  if row[LOCAL] == '' then return {0, 0, 0, 0, 0} end
  return cmsgpack.unpack(row[LOCAL])
end

-- what was sent last: seq, used, returned, x, its period, beta, prefetched,
-- closed, want, regrant, granted
local SENT_USED, SENT_RETURNED, SENT_CLOSED, SENT_REGRANT, SENT_LAST = 2, 3, 8, 10, 11

local function sent(l)
  if l[SENT] == '' then return {0, 0, 0, 0, 0, 0, 0, false, 0, '', 0} end
  return cmsgpack.unpack(l[SENT])
end

-- The next argument as a name that is kept in the row, where it ends with a
-- zero byte, and a one has a meaning.
local function name()
  local s = text()
  assert(not string.find(s, '[%z\1]'), 'a name with a byte of zero or one')
  return s
end

local function push_fields(t, from, to)
  for i = from, to do push_one(t[i]) end
end

-- Views -----------------------------------------------------------------------

local function push_missing(not_after)
  push(MISSING, seen_by(not_after))
end

local function bit(v)
  return v and 1 or 0
end

-- what was sent last, a lone 0 for nothing
local function push_sent(l)
  if l[SENT] == '' then return push(0) end
  local s, n = sent(l), #out
  for i = 1, SENT_LAST do out[n + i] = s[i] end
  out[n + SENT_CLOSED] = bit(s[SENT_CLOSED])
end

-- A lease, its live tokens, for how long it lives and what was sent last behind
-- a 1; behind a 0 what there is of an idle one, as two of three are mostly.
local function push_lease(l, kind)
  local n = #out
  if idle(l) then
    out[n + 1], out[n + 2], out[n + 3], out[n + 4] = 0, l[INC], l[LOST], l[MARK]
    return
  end
  out[n + 1] = 1
  n = n + 1
  for i = INC, CARRY do out[n + i] = l[i] end
  out[n + PENDING], out[n + CLOSED], out[n + OVER] = bit(l[PENDING]), bit(l[CLOSED]), bit(l[OVER])
  out[n + CARRY + 1], out[n + CARRY + 2] = live(l, kind), alive(l) and l[DEADLINE] - now or 0
  push_sent(l)
end

local function push_view(row, seen, outcome)
  push(outcome, seen, row[DEMAND], row[NONCE])
  push_fields(bucket(row), 1, 5)
  push(row[LOCAL_MARK], row[LOCAL_TOTAL])
  for kind = RESERVE, LUMP do push_lease(row[LEASES + kind], kind) end
end
