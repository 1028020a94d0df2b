-- Decides over all rows at once: every budget has its cost, or nothing is
-- taken from any.
-- Keys: a row per take, and behind them, if a request id was given, where its
-- answer is kept. Arguments: number of takes, hold, content, keep; per take: cost,
-- prefetch, for how long to hold, demand, not_after, and how many settlements
-- come along, each with the arguments of book.lua's settle.
-- Atomic: the kept answer, all rows, the answer to keep.

local function prefetchable(l, kind)
  local free = live(l, kind)
  if kind == LUMP then return free end
  return max(0, min(free, math.floor(l[BETA] / 4) - counted(l)))
end

local function new_generation(l)
  l[CUR + ID], l[CUR + N], l[CUR + OPENED], l[CUR + STOP] = l[CUR + ID] + 1, 0, now, 0
end

-- counts n more tokens as held by processes for so long; returns their generation
local function hold_tokens(l, n, span)
  if l[CUR + N] == 0 then
    new_generation(l)
  elseif l[PREV + N] == 0 and now >= l[CUR + OPENED] + PROCESS_DEADLINE then
    for i = ID, STOP do l[PREV + i] = l[CUR + i] end
    new_generation(l)
  end
  l[CUR + N] = l[CUR + N] + n
  postpone(l, CUR, now + span + PROCESS_GUARD)
  return l[CUR + ID]
end

-- lets time pass, settles, counts demand, says whether the cost could be taken
local function ask(row, t, hold)
  local settles = number()
  if not current(row) then
    t.outcome, t.seen = MISSING, seen_by(t.not_after)
    arg_at = arg_at + SETTLE_ARGS * settles
    return
  end
  t.seen = pass(row, t.not_after)
  for _ = 1, settles do settle(row) end
  row[DEMAND] = add(row[DEMAND], max(0, t.demand))
  local sum = 0
  for kind = RESERVE, LUMP do
    local l = row[LEASES + kind]
    if alive(l) then sum = add(sum, hold and prefetchable(l, kind) or unspent(l, kind)) end
  end
  t.outcome = sum >= t.cost and OK or SHORT
end

-- takes the cost from the leases in their order, then the prefetch
local function draw(row, t, hold)
  local held = {0, 0, 0}
  local cost, more = max(0, t.cost), max(0, t.prefetch)
  for kind = RESERVE, LUMP do
    local l = row[LEASES + kind]
    if cost > 0 and alive(l) then
      local n
      if hold then
        n = min(cost, prefetchable(l, kind))
        held[kind] = n
      else
        n = min(cost, unspent(l, kind))
        if kind ~= LUMP then l[BALANCE] = l[BALANCE] - n end
        l[USED] = add(l[USED], n)
      end
      cost = cost - n
    end
  end
  if more <= 0 and not hold then return end
  t.parts = {}
  for kind = RESERVE, LUMP do
    local l = row[LEASES + kind]
    local extra = min(more, prefetchable(l, kind) - held[kind])
    more = more - extra
    local n = held[kind] + extra
    if n > 0 then
      if kind ~= LUMP then l[BALANCE] = l[BALANCE] - n end
      t.parts[#t.parts + 1] = {kind, l[INC], hold_tokens(l, n, t.span), n, min(l[DEADLINE] - now, t.span)}
    end
  end
end

-- time from seen until a share has minted n more tokens
local function wait_for(l, n, seen)
  return min(wait(l[X], l[PER], n, l[CARRY]) + max(0, l[MARK] - seen), LONGEST)
end

-- how long the live shares need to mint n more tokens together
local function mint_in(row, n, seen)
  if n <= 0 then return 0 end
  local room = {0, 0}
  for kind = RESERVE, PACED do
    local l = row[LEASES + kind]
    if alive(l) and l[X] > 0 and l[PER] > 0 then room[kind] = l[BETA] - counted(l) - l[BALANCE] end
  end
  local best = NEVER
  for kind = RESERVE, PACED do
    local other = 3 - kind
    local mine = min(n, room[kind])
    local rest = n - mine
    if mine > 0 and rest <= room[other] then
      local d = wait_for(row[LEASES + kind], mine, seen)
      if rest > 0 then d = max(d, wait_for(row[LEASES + other], rest, seen)) end
      if best == NEVER or d < best then best = d end
    end
  end
  return best
end

-- says what the row holds after the step
local function describe(row, t)
  local sum, shares, beta, x, per, mints, lasts, pending = 0, 0, 0, 0, 0, 0, 0, 0
  for kind = RESERVE, LUMP do
    local l = row[LEASES + kind]
    if l[PENDING] then pending = 1 end
    if alive(l) then
      local free = unspent(l, kind)
      sum = add(sum, free)
      lasts = max(lasts, l[DEADLINE] - now)
      if kind ~= LUMP then
        shares = add(shares, free)
        beta = add(beta, l[BETA])
        if per == 0 then
          x, per = l[X], l[PER]
        else
          x = add(x, rate_in(l[X], l[PER], per))
        end
      end
    end
  end
  if t.outcome == SHORT then
    mints = NEVER
    if sum < t.cost then mints = mint_in(row, t.cost - sum, t.seen) end
  end
  local n = #out
  out[n + 1], out[n + 2], out[n + 3], out[n + 4] = sum, shares, beta, x
  out[n + 5], out[n + 6], out[n + 7], out[n + 8] = per, mints, lasts, pending
end

-- answers a request whose answer was kept; returns whether it did
local function recall(answer_key, content)
  local packed = redis.call('GET', answer_key)
  local kept = packed and cmsgpack.unpack(packed)
  if not kept or kept[1] <= now then return false end
  if kept[2] ~= content then
    out[#out + 1], out[#out + 2], out[#out + 3] = 0, 0, 1
    return true
  end
  local answer = kept[3]
  for i = 2, #answer do out[#out + 1] = answer[i] end
  return true
end

-- What is kept of the answer that begins at a position: it says that it is
-- a repetition, and lacks the parts, whose tokens are in the memory of whoever
-- gets this one. An id stands before it.
local function to_keep(from, keep, content)
  local answer = {id}
  for i = from, #out do answer[#answer + 1] = out[i] end
  answer[3] = 1
  return cmsgpack.pack({now + keep, content, answer})
end

local function step(keys)
  local takes, hold, content, keep = number(), flag(), text(), number()
  local answer_key = keys > takes and key(takes + 1) or nil
  if answer_key and recall(answer_key, content) then return end

  local rows, before, asked = {}, {}, {}
  local took = true
  for i = 1, takes do
    local cost, prefetch, span, demand, not_after = number(), number(), number(), number(), number()
    local t = {
      cost = cost, prefetch = prefetch, span = span, demand = demand, not_after = not_after,
      outcome = MISSING, seen = 0, parts = nil,
    }
    rows[i], before[i] = load(key(i))
    asked[i] = t
    ask(rows[i], t, hold)
    took = took and t.outcome == OK
  end

  local from = #out + 1
  out[from], out[from + 1], out[from + 2], out[from + 3] = took and 1 or 0, 0, 0, takes
  for i = 1, takes do
    local row, t = rows[i], asked[i]
    out[#out + 1] = t.outcome
    out[#out + 1] = t.seen
    if t.outcome ~= MISSING then
      if took then draw(row, t, hold) end
      describe(row, t)
    end
  end
  local answer = answer_key and keep > 0 and took and to_keep(from, keep, content)
  for i = 1, takes do
    for _, part in ipairs(asked[i].parts or {}) do
      out[#out + 1] = i
      for f = 1, 5 do out[#out + 1] = part[f] end
    end
  end
  for i = 1, takes do
    if asked[i].outcome ~= MISSING then save(key(i), rows[i], before[i]) end
  end
  if answer then
    redis.call('SET', answer_key, answer, 'PX', whole(math.ceil(keep / 1000) + 1000))
  end
end
