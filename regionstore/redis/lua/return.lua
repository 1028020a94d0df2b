-- Takes unspent tokens out of a live lump until no more than keep are held.
-- Key: the row. Arguments: not_after, incarnation, keep.
-- Atomic: load, take out, save.
local function step()
  local not_after, inc, keep = number(), text(), number()
  local row, before = load(key(1))
  if not current(row) then return push_missing(not_after) end
  local seen = pass(row, not_after)
  local l = named(row, LUMP, inc)
  local outcome = OK
  if not l then
    outcome = STALE
  elseif not alive(l) then
    outcome = DEAD
  else
    local free = unspent(l, LUMP)
    local n = min(free, free + counted(l) - max(0, keep))
    l[RETURNED] = add(l[RETURNED], max(0, n))
  end
  push_view(row, seen, outcome)
  save(key(1), row, before)
end
