-- Books what became of prefetched tokens.
-- KEYS[1]: the row. ARGV: not_after, kind, incarnation, generation, used, back.
-- Atomic: load, book, save.
local not_after, kind, inc, generation, used, back = number(), number(), text(), number(), number(), number()
local row = load(KEYS[1])
if not current(row) then
  push(MISSING)
  return out
end
pass(row, not_after)
local l = named(row, kind, inc)
local g = nil
if l and generation > 0 then
  if l.cur.id == generation then
    g = l.cur
  elseif l.prev.id == generation then
    g = l.prev
  end
end
if g then
  used = max(0, min(used, g.n))
  back = max(0, min(back, g.n - used))
  g.n = g.n - (used + back)
  l.used = add(l.used, used)
  if l.ended then
    -- worth nothing any more
  elseif l.closed then
    l.returned = add(l.returned, back)
  elseif is_share(kind) then
    l.balance = min(l.balance + back, l.beta - counted(l))
  end
  trim(l, kind)
  push(OK)
else
  push(STALE)
end
save(KEYS[1], row)
return out
