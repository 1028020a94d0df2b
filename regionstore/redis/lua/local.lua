-- Takes from the local allowance, a bucket that starts empty and that nothing
-- refills but time.
-- KEYS[1]: the row. ARGV: not_after, cost, rate, its period, burst, demand.
-- Atomic: load, take, save.
local not_after, cost, x, per, burst, demand = number(), number(), number(), number(), number(), number()
local row, before = load(KEYS[1])
if not current(row) then
  push(MISSING, 0, 0, seen_by(not_after))
  return out
end
local seen = pass(row, not_after)
row[DEMAND] = add(row[DEMAND], max(0, demand))

row[LOCAL_BALANCE], row[LOCAL_MARK], row[LOCAL_CARRY] = mint_bucket(row[LOCAL_X], row[LOCAL_PER], row[LOCAL_BURST], seen, now, row[LOCAL_BALANCE], row[LOCAL_MARK], row[LOCAL_CARRY])
if per ~= row[LOCAL_PER] then row[LOCAL_CARRY] = 0 end
row[LOCAL_X], row[LOCAL_PER], row[LOCAL_BURST] = x, per, max(0, burst)
row[LOCAL_BALANCE], row[LOCAL_CARRY] = fill(row[LOCAL_BALANCE], row[LOCAL_BURST], 0, row[LOCAL_CARRY])

local outcome, retry = OK, 0
cost = max(0, cost)
if cost <= row[LOCAL_BALANCE] and cost <= MAX - row[LOCAL_TOTAL] then
  row[LOCAL_BALANCE] = row[LOCAL_BALANCE] - cost
  row[LOCAL_TOTAL] = row[LOCAL_TOTAL] + cost
elseif cost > row[LOCAL_BURST] then
  outcome, retry = SHORT, NEVER
else
  outcome = SHORT
  retry = wait(row[LOCAL_X], row[LOCAL_PER], cost - row[LOCAL_BALANCE], row[LOCAL_CARRY])
  if retry ~= NEVER then retry = min(retry + max(0, row[LOCAL_MARK] - seen), LONGEST) end
end
push(outcome, row[LOCAL_BALANCE], retry, seen)
save(KEYS[1], row, before)
return out
