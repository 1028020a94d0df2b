-- Applies the ledger's answers to the leases whose pending sequence they
-- answer, and to no others. Never makes a row.
-- Key: the row. Arguments: not_after, number of states; per state: kind,
-- incarnation, seq, status, granted, x, its period, beta, ttl, holder.
-- Atomic: load, all states, save.

local function apply_share(l, granted, x, per, beta)
  if l[DEADLINE] == 0 then l[MARK] = now end
  if l[PER] ~= per then l[CARRY] = 0 end
  local given = max(0, granted - l[GRANTED])
  l[GRANTED] = l[GRANTED] + given
  l[X], l[PER] = x, per
  l[BETA] = max(beta, least_beta(l))
  l[BALANCE], l[CARRY] = fill(l[BALANCE], l[BETA] - counted(l), given, l[CARRY])
end

local function install_one(row)
  local kind, inc, seq, status = number(), text(), number(), number()
  local granted, x, per, beta, ttl, holder = number(), number(), number(), number(), number(), name()
  local l = lease(row, kind)
  if not l or l[INC] ~= inc or not l[PENDING] or l[SEQ] ~= seq then return STALE end
  l[PENDING] = false
  if status == ENDED then
    l[OVER] = true
    l[BALANCE], l[CARRY], l[X] = 0, 0, 0
    return OK
  end
  if status == NOT_PLANNED then
    if holder ~= '' and holder ~= l[INC] then
      l[LOST] = holder
    elseif holder == '' and sent(l)[SENT_REGRANT] == l[LOST] then
      l[LOST] = ''
    end
    l[OVER] = l[CLOSED]
    return OK
  end
  local deadline = l[ANCHOR] + ttl
  if l[CLOSED] or dead(l) or now >= deadline then return DEAD end
  if is_share(kind) then
    apply_share(l, granted, x, per, beta)
  else
    l[GRANTED] = max(granted, l[USED] + l[RETURNED] + counted(l))
  end
  l[DEADLINE] = deadline
  l[LOST] = ''
  return OK
end

local function step()
  local not_after, states = number(), number()
  local row, before = load(key(1))
  if not current(row) then
    for _ = 1, states do push(MISSING) end
    return push_missing(not_after)
  end
  local seen = pass(row, not_after)
  for _ = 1, states do push(install_one(row)) end
  push_view(row, seen, OK)
  save(key(1), row, before)
end
