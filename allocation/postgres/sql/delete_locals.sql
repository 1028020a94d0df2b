DELETE FROM locals
USING unnest($1::bytea[], $2::bytea[], $3::bytea[])
    AS gone (budget, region, source)
WHERE locals.budget = gone.budget
  AND locals.region = gone.region
  AND locals.source = gone.source
