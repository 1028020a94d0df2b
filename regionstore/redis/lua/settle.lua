-- Books what became of prefetched tokens.
-- KEYS[1]: the row. ARGV: not_after, kind, incarnation, generation, used, back.
-- Atomic: load, book, save.
local not_after, kind, inc, generation, used, back = number(), number(), text(), number(), number(), number()
local row, before = load(KEYS[1])
if not current(row) then
  push(MISSING)
  return out
end
pass(row, not_after)
local l = named(row, kind, inc)
local g = nil
if l and generation > 0 then
  if l[CUR + ID] == generation then
    g = CUR
  elseif l[PREV + ID] == generation then
    g = PREV
  end
end
if g then
  used = max(0, min(used, l[g + N]))
  back = max(0, min(back, l[g + N] - used))
  l[g + N] = l[g + N] - (used + back)
  l[USED] = add(l[USED], used)
  if l[OVER] then
    -- worth nothing any more
  elseif l[CLOSED] then
    l[RETURNED] = add(l[RETURNED], back)
  elseif is_share(kind) then
    l[BALANCE] = min(l[BALANCE] + back, l[BETA] - counted(l))
  end
  trim(l, kind)
  push(OK)
else
  push(STALE)
end
save(KEYS[1], row, before)
return out
