-- Writes a new sequence, and all that will be said under it, into each lease
-- that an intent names, before anything is sent.
-- Key: the row. Arguments: not_after, min_age, number of intents; per intent:
-- kind, incarnation, want, regrant, lower x, its period, lower beta, supersede.
-- Atomic: load, all intents, save.

-- cuts a share at once
local function lower(l, x, per, beta)
  if per > 0 and l[PER] > 0 then l[X] = min(l[X], rate_in(x, per, l[PER])) end
  if beta < 0 or beta >= l[BETA] then return end
  l[BALANCE] = max(0, min(l[BALANCE], beta - counted(l)))
  l[BETA] = max(beta, least_beta(l))
end

-- makes the lease's next sequence pending, anchored at the raw clock
local function write(l, kind, want, regrant)
  l[SEQ] = l[SEQ] + 1
  l[PENDING] = true
  l[ANCHOR] = now
  local share = is_share(kind)
  l[SENT] = cmsgpack.pack({
    l[SEQ], l[USED], l[RETURNED],
    share and l[X] or 0, share and l[PER] or 0, share and l[BETA] or 0,
    counted(l), l[CLOSED],
    not share and not l[CLOSED] and want or 0,
    share and regrant and not l[CLOSED] and l[LOST] or '',
    share and l[GRANTED] or 0,
  })
end

local function begin_one(row, min_age)
  local kind, inc, want, regrant = number(), text(), number(), flag()
  local x, per, beta, supersede = number(), number(), number(), flag()
  local l = named(row, kind, inc)
  if not l then return push(STALE) end
  if l[OVER] then return push(DEAD) end
  if l[PENDING] and not supersede and now < l[ANCHOR] + min_age then
    push(BUSY)
    return push_sent(l)
  end
  if dead(l) then fence(l, kind) end
  if is_share(kind) and not l[CLOSED] then lower(l, x, per, beta) end
  write(l, kind, want, regrant)
  push(OK)
  push_sent(l)
end

local function step()
  local not_after, min_age, intents = number(), number(), number()
  local row, before = load(key(1))
  if not current(row) then
    for _ = 1, intents do push(MISSING) end
    return push_missing(not_after)
  end
  local seen = pass(row, not_after)
  for _ = 1, intents do begin_one(row, min_age) end
  push_view(row, seen, OK)
  save(key(1), row, before)
end
