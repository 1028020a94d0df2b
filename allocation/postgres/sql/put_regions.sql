INSERT INTO regions (
    budget, name, demand, demand_total, waiting, want, rtt, seen_at, paced, window_start,
    window_granted
)
SELECT
    budget, name, demand, demand_total, waiting, want, rtt, seen_at, paced, window_start,
    window_granted
FROM unnest(
    $1::bytea[], $2::bytea[], $3::float8[], $4::bigint[], $5::bigint[], $6::bigint[],
    $7::bigint[], $8::bigint[], $9::boolean[], $10::bigint[], $11::bigint[]
) AS row (
    budget, name, demand, demand_total, waiting, want, rtt, seen_at, paced, window_start,
    window_granted
)
ON CONFLICT (budget, name) DO UPDATE SET
    demand = excluded.demand, demand_total = excluded.demand_total,
    waiting = excluded.waiting, want = excluded.want, rtt = excluded.rtt,
    seen_at = excluded.seen_at, paced = excluded.paced,
    window_start = excluded.window_start, window_granted = excluded.window_granted
