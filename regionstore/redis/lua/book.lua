-- What take.lua and settle.lua share, behind wallet.lua.

-- the position of the lease's generation of that number, nil if it counts none
local function generation_at(l, id)
  if id <= 0 then return nil end
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
  elseif kind ~= LUMP then
    l[BALANCE] = min(l[BALANCE] + back, l[BETA] - counted(l))
  end
  trim(l, kind)
end

-- Books what became of prefetched tokens on a current row, behind pass: OK, also
-- for kind 0, or STALE where the row holds another lease or generation.
local SETTLE_ARGS = 5 -- kind, incarnation, generation, used, back
local function settle(row)
  local kind, inc, generation, used, back = number(), text(), number(), number(), number()
  if kind == 0 then return OK end
  local l = kind >= RESERVE and kind <= LUMP and row[LEASES + kind]
  local g = l and inc ~= '' and l[INC] == inc and generation_at(l, generation)
  if not g then return STALE end
  book(l, kind, g, used, back)
  return OK
end
