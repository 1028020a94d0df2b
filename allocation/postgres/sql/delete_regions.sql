DELETE FROM regions
USING unnest($1::bytea[], $2::bytea[])
    AS gone (budget, name)
WHERE regions.budget = gone.budget
  AND regions.name = gone.name
