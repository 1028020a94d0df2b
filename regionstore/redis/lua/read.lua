-- Views a row, and lets time pass on it.
-- Key: the row. Argument: not_after.
-- Atomic: load, pass, save.
local function step()
  local not_after = number()
  local row, before = load(key(1))
  if not current(row) then return push_missing(not_after) end
  push_view(row, pass(row, not_after), OK)
  save(key(1), row, before)
end
