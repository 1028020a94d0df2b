-- Makes the row if it is missing or void and gives incarnations to the kinds
-- that need one.
-- Key: the row. Arguments: not_after, a nonce per kind, the local nonce.
-- Atomic: load, renew, save.

-- the share that the ledger may still count for a void row
local function lost(row, kind)
  local l = row and is_share(kind) and lease(row, kind)
  if not l then return '' end
  if not l[OVER] and (l[DEADLINE] ~= 0 or l[PENDING]) then return l[INC] end
  return l[LOST]
end

local function acknowledged(l)
  local s = sent(l)
  return not l[PENDING] and s[SENT_CLOSED] and s[SENT_USED] == l[USED] and s[SENT_RETURNED] == l[RETURNED]
end

-- whether the lease gives way to a new incarnation
local function over(l)
  if l[INC] == '' or l[OVER] then return true end
  if l[DEADLINE] ~= 0 and now >= l[DEADLINE] + PROCESS_GUARD then return true end
  return l[CLOSED] and counted(l) == 0 and (l[SEQ] == 0 or acknowledged(l))
end

local function step()
  local not_after, nonces, local_nonce = number(), {name(), name(), name()}, name()
  local row, before = load(key(1))
  local created = not current(row)
  local void = created and row ~= nil
  local seen
  if created then
    row = {
      life, local_nonce, 0, now, 0, '',
      new_lease('', lost(row, RESERVE), 0), new_lease('', lost(row, PACED), 0), new_lease('', '', 0),
    }
    seen = seen_by(not_after)
  else
    seen = pass(row, not_after)
  end
  for kind = RESERVE, LUMP do
    local l = lease(row, kind)
    if over(l) then row[LEASES + kind] = new_lease(nonces[kind], l[LOST], 0) end
  end
  push(created, void)
  push_view(row, seen, OK)
  save(key(1), row, before)
end
