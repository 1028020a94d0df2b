SELECT
    budget, region, source, total, seen_at
FROM locals
WHERE budget = ANY ($1::bytea[])
ORDER BY budget, region, source
