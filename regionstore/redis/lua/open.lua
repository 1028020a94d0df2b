-- Makes the row if it is missing or void and gives incarnations to the kinds
-- that need one.
-- KEYS[1]: the row. ARGV: not_after, a nonce per kind, the local nonce.
-- Atomic: load, renew, save.
local not_after = number()
local nonces = {text(), text(), text()}
local local_nonce = text()

-- the share that the ledger may still count for a void row
local function lost(row, kind)
  local l = row and is_share(kind) and row[kind]
  if not l then return '' end
  if l.seq > 0 and not l.ended then return l.inc end
  return l.lost
end

local function acknowledged(l)
  local s = l.sent
  return s and not l.pending and s.closed and s.used == l.used and s.returned == l.returned
end

-- whether the lease gives way to a new incarnation
local function over(l)
  if l.inc == '' or l.ended then return true end
  if l.deadline ~= 0 and now >= l.deadline + PROCESS_GUARD then return true end
  return l.closed and counted(l) == 0 and (l.seq == 0 or acknowledged(l))
end

local row = load(KEYS[1])
local created = not current(row)
local void = created and row ~= nil
local seen
if created then
  row = {
    id = id, demand = 0,
    nonce = local_nonce, x = 0, per = 0, burst = 0, balance = 0, carry = 0, mark = now, total = 0,
    new_lease('', lost(row, RESERVE)), new_lease('', lost(row, PACED)), new_lease('', ''),
  }
  seen = seen_by(not_after)
else
  seen = pass(row, not_after)
end
for kind = RESERVE, LUMP do
  if over(row[kind]) then row[kind] = new_lease(nonces[kind], row[kind].lost) end
end
push(created, void)
push_view(row, seen, OK)
save(KEYS[1], row)
return out
