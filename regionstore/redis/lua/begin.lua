-- Writes a new sequence, and all that will be said under it, into each lease
-- that an intent names, before anything is sent.
-- KEYS[1]: the row. ARGV: not_after, min_age, number of intents; per intent:
-- kind, incarnation, want, regrant, lower x, its period, lower beta, supersede.
-- Atomic: load, all intents, save.
local not_after, min_age, intents = number(), number(), number()
local row = load(KEYS[1])
if not current(row) then
  for _ = 1, intents do push(MISSING) end
  push_missing(not_after)
  return out
end

-- cuts a share at once
local function lower(l, x, per, beta)
  if per > 0 and l.per > 0 then l.x = min(l.x, rate_in(x, per, l.per)) end
  if beta < 0 or beta >= l.beta then return end
  l.balance = max(0, min(l.balance, beta - counted(l)))
  l.beta = max(beta, least_beta(l))
end

-- makes the lease's next sequence pending, anchored at the raw clock
local function write(l, kind, want, regrant)
  l.seq = l.seq + 1
  l.pending = true
  l.anchor = now
  local share = is_share(kind)
  l.sent = {
    seq = l.seq, used = l.used, returned = l.returned,
    x = share and l.x or 0, per = share and l.per or 0, beta = share and l.beta or 0,
    prefetched = counted(l), closed = l.closed,
    want = not share and not l.closed and want or 0,
    regrant = share and regrant and not l.closed and l.lost or '',
  }
end

local function begin_one()
  local kind, inc, want, regrant = number(), text(), number(), flag()
  local x, per, beta, supersede = number(), number(), number(), flag()
  local l = named(row, kind, inc)
  if not l then return push(STALE) end
  if l.ended then return push(DEAD) end
  if l.pending and not supersede and now < l.anchor + min_age then
    push(BUSY)
    return push_sent(l.sent)
  end
  if dead(l) then fence(l, kind) end
  if is_share(kind) and not l.closed then lower(l, x, per, beta) end
  write(l, kind, want, regrant)
  push(OK)
  push_sent(l.sent)
end

local seen = pass(row, not_after)
for _ = 1, intents do begin_one() end
push_view(row, seen, OK)
save(KEYS[1], row)
return out
