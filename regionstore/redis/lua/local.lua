-- Takes from the local allowance, a bucket that starts empty and that nothing
-- refills but time.
-- Key: the row. Arguments: not_after, cost, rate, its period, burst, demand.
-- Atomic: load, take, save.
local function step()
  local not_after, cost, x, per, burst, demand = number(), number(), number(), number(), number(), number()
  local row, before = load(key(1))
  if not current(row) then return push(MISSING, 0, 0, seen_by(not_after)) end
  local seen = pass(row, not_after)
  row[DEMAND] = add(row[DEMAND], max(0, demand))

  local x_before, per_before, burst_before, balance, carry = unpack(bucket(row))
  balance, row[LOCAL_MARK], carry = mint_bucket(x_before, per_before, burst_before, seen, now, balance, row[LOCAL_MARK], carry)
  if per ~= per_before then carry = 0 end
  burst = max(0, burst)
  balance, carry = fill(balance, burst, 0, carry)

  local outcome, retry = OK, 0
  cost = max(0, cost)
  if cost <= balance and cost <= MAX - row[LOCAL_TOTAL] then
    balance = balance - cost
    row[LOCAL_TOTAL] = row[LOCAL_TOTAL] + cost
  elseif cost > burst then
    outcome, retry = SHORT, NEVER
  else
    outcome = SHORT
    retry = wait(x, per, cost - balance, carry)
    if retry ~= NEVER then retry = min(retry + max(0, row[LOCAL_MARK] - seen), LONGEST) end
  end
  row[LOCAL] = cmsgpack.pack({x, per, burst, balance, carry})
  push(outcome, balance, retry, seen)
  save(key(1), row, before)
end
