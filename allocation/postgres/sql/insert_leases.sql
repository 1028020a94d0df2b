INSERT INTO leases (
    budget, region, kind, incarnation, window_start, seq, granted, used, returned, x,
    told_x, beta, told_beta, minted, mint_carry, minted_at, hold, ttl, reclaim, keep,
    short, retry_after, closing, ending, ended_at, written_off, late_used, late_returned,
    late_credited
)
SELECT
    budget, region, kind, incarnation, window_start, seq, granted, used, returned, x,
    told_x, beta, told_beta, minted, mint_carry, minted_at, hold, ttl, reclaim, keep,
    short, retry_after, closing, ending, ended_at, written_off, late_used, late_returned,
    late_credited
FROM unnest(
    $1::bytea[], $2::bytea[], $3::smallint[], $4::bytea[], $5::bigint[], $6::bigint[],
    $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[],
    $13::bigint[], $14::bigint[], $15::bigint[], $16::bigint[], $17::bigint[],
    $18::bigint[], $19::bigint[], $20::bigint[], $21::smallint[], $22::bigint[],
    $23::boolean[], $24::text[], $25::bigint[], $26::bigint[], $27::bigint[],
    $28::bigint[], $29::bigint[]
) AS row (
    budget, region, kind, incarnation, window_start, seq, granted, used, returned, x,
    told_x, beta, told_beta, minted, mint_carry, minted_at, hold, ttl, reclaim, keep,
    short, retry_after, closing, ending, ended_at, written_off, late_used, late_returned,
    late_credited
)
