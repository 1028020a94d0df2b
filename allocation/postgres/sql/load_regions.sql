SELECT
    budget, name, demand, demand_total, waiting, want, rtt, seen_at, paced, window_start,
    window_granted
FROM regions
WHERE budget = ANY ($1::bytea[])
ORDER BY budget, name
