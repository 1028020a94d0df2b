-- Applies the ledger's answers to the leases whose pending sequence they
-- answer, and to no others. Never makes a row.
-- KEYS[1]: the row. ARGV: not_after, number of states; per state: kind,
-- incarnation, seq, status, granted, x, its period, beta, ttl, holder.
-- Atomic: load, all states, save.
local not_after, states = number(), number()
local row = load(KEYS[1])
if not current(row) then
  for _ = 1, states do push(MISSING) end
  push_missing(not_after)
  return out
end

local function apply_share(l, granted, x, per, beta)
  if l.deadline == 0 then l.mark = now end
  if l.per ~= per then l.carry = 0 end
  local given = max(0, granted - l.granted)
  l.granted = l.granted + given
  l.x, l.per = x, per
  l.beta = max(beta, least_beta(l))
  l.balance = min(add(l.balance, given), l.beta - counted(l))
end

local function install_one()
  local kind, inc, seq, status = number(), text(), number(), number()
  local granted, x, per, beta, ttl, holder = number(), number(), number(), number(), number(), text()
  local l = row[kind]
  if not l or l.inc ~= inc or not l.pending or l.seq ~= seq then return STALE end
  l.pending = false
  if status == ENDED then
    l.ended = true
    l.balance, l.carry, l.x = 0, 0, 0
    return OK
  end
  if status == NOT_PLANNED then
    if holder ~= '' and holder ~= l.inc then l.lost = holder end
    l.ended = l.closed
    return OK
  end
  local deadline = l.anchor + ttl
  if l.closed or dead(l) or now >= deadline then return DEAD end
  if is_share(kind) then
    apply_share(l, granted, x, per, beta)
  else
    l.granted = max(granted, l.used + l.returned + counted(l))
  end
  l.deadline = deadline
  l.lost = ''
  return OK
end

local seen = pass(row, not_after)
for _ = 1, states do push(install_one()) end
push_view(row, seen, OK)
save(KEYS[1], row)
return out
