INSERT INTO locals (
    budget, region, source, total, seen_at
)
SELECT
    budget, region, source, total, seen_at
FROM unnest(
    $1::bytea[], $2::bytea[], $3::bytea[], $4::bigint[], $5::bigint[]
) AS row (
    budget, region, source, total, seen_at
)
