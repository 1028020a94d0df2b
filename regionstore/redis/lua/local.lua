-- Takes from the local allowance, a bucket that starts empty and that nothing
-- refills but time.
-- KEYS[1]: the row. ARGV: not_after, cost, rate, its period, burst, demand.
-- Atomic: load, take, save.
local not_after, cost, x, per, burst, demand = number(), number(), number(), number(), number(), number()
local row = load(KEYS[1])
if not current(row) then
  push(MISSING, 0, 0, seen_by(not_after))
  return out
end
local seen = pass(row, not_after)
row.demand = add(row.demand, max(0, demand))

row.balance, row.mark, row.carry = mint_bucket(row.x, row.per, row.burst, seen, now, row.balance, row.mark, row.carry)
if per ~= row.per then row.carry = 0 end
row.x, row.per, row.burst = x, per, max(0, burst)
row.balance = min(row.balance, row.burst)

local outcome, retry = OK, 0
cost = max(0, cost)
if cost <= row.balance and cost <= MAX - row.total then
  row.balance = row.balance - cost
  row.total = row.total + cost
elseif cost > row.burst then
  outcome, retry = SHORT, NEVER
else
  outcome = SHORT
  retry = wait(row.x, row.per, cost - row.balance, row.carry)
  if retry ~= NEVER then retry = min(retry + max(0, row.mark - seen), LONGEST) end
end
push(outcome, row.balance, retry, seen)
save(KEYS[1], row)
return out
