-- Fences a lease and takes its balance out. Closing twice changes nothing.
-- Key: the row. Arguments: not_after, kind, incarnation.
-- Atomic: load, fence, save.
local function step()
  local not_after, kind, inc = number(), number(), text()
  local row, before = load(key(1))
  if not current(row) then return push_missing(not_after) end
  local seen = pass(row, not_after)
  local l = named(row, kind, inc)
  local outcome = OK
  if not l then
    outcome = STALE
  elseif l[OVER] then
    outcome = DEAD
  else
    fence(l, kind)
  end
  push_view(row, seen, outcome)
  save(key(1), row, before)
end
