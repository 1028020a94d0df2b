UPDATE regions SET
    demand = row.demand, demand_total = row.demand_total,
    waiting = row.waiting, want = row.want, rtt = row.rtt,
    seen_at = row.seen_at, paced = row.paced,
    window_start = row.window_start, window_granted = row.window_granted
FROM unnest(
    $1::bytea[], $2::bytea[], $3::float8[], $4::bigint[], $5::bigint[], $6::bigint[],
    $7::bigint[], $8::bigint[], $9::boolean[], $10::bigint[], $11::bigint[]
) AS row (
    budget, name, demand, demand_total, waiting, want, rtt, seen_at, paced, window_start,
    window_granted
)
WHERE regions.budget = row.budget
  AND regions.name = row.name
