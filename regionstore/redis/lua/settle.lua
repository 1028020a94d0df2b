-- Books what became of prefetched tokens.
-- Key: the row. Arguments: not_after, kind, incarnation, generation, used, back.
-- Atomic: load, book, save.

-- the position of the lease's generation of that number, nil if it counts none
local function generation_at(l, id)
  if not l or id <= 0 then return nil end
  if l[CUR + ID] == id then return CUR end
  if l[PREV + ID] == id then return PREV end
end

local function book(l, kind, g, used, back)
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
end

local function step()
  local not_after, kind, inc, generation, used, back = number(), number(), text(), number(), number(), number()
  local row, before = load(key(1))
  if not current(row) then return push(MISSING) end
  pass(row, not_after)
  local l = named(row, kind, inc)
  local g = generation_at(l, generation)
  if g then
    book(l, kind, g, used, back)
    push(OK)
  else
    push(STALE)
  end
  save(key(1), row, before)
end
