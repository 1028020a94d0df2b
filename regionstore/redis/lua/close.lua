-- Fences a lease and takes its balance out. Closing twice changes nothing.
-- KEYS[1]: the row. ARGV: not_after, kind, incarnation.
-- Atomic: load, fence, save.
local not_after, kind, inc = number(), number(), text()
local row, before = load(KEYS[1])
if not current(row) then
  push_missing(not_after)
  return out
end
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
save(KEYS[1], row, before)
return out
