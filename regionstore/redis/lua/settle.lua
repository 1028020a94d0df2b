-- Books demand, and what became of prefetched tokens.
-- Key: the row. Arguments: not_after, demand, and those of book.lua's settle,
-- whose kind is 0 where there is only demand.
-- Atomic: load, book, save.
local function step()
  local not_after, demand = number(), number()
  local row, before = load(key(1))
  if not current(row) then
    out[#out + 1] = MISSING
    return
  end
  pass(row, not_after)
  row[DEMAND] = add(row[DEMAND], max(0, demand))
  out[#out + 1] = settle(row)
  save(key(1), row, before)
end
