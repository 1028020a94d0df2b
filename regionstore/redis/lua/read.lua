-- Views a row, and lets time pass on it.
-- KEYS[1]: the row. ARGV: not_after.
-- Atomic: load, pass, save.
local not_after = number()
local row, before = load(KEYS[1])
if not current(row) then
  push_missing(not_after)
  return out
end
push_view(row, pass(row, not_after), OK)
save(KEYS[1], row, before)
return out
