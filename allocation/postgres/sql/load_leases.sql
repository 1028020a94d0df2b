SELECT
    budget, region, kind, incarnation, window_start, seq, granted, used, returned, x,
    told_x, beta, told_beta, minted, mint_carry, minted_at, hold, ttl, reclaim, keep,
    short, retry_after, closing, ending, ended_at, written_off, late_used, late_returned,
    late_credited
FROM leases
WHERE budget = ANY ($1::bytea[])
ORDER BY budget, region, kind, incarnation
