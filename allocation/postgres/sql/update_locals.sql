UPDATE locals SET
    total = row.total, seen_at = row.seen_at
FROM unnest(
    $1::bytea[], $2::bytea[], $3::bytea[], $4::bigint[], $5::bigint[]
) AS row (
    budget, region, source, total, seen_at
)
WHERE locals.budget = row.budget
  AND locals.region = row.region
  AND locals.source = row.source
