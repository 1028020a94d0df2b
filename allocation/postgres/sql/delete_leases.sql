DELETE FROM leases
USING unnest($1::bytea[], $2::bytea[], $3::smallint[], $4::bytea[])
    AS gone (budget, region, kind, incarnation)
WHERE leases.budget = gone.budget
  AND leases.region = gone.region
  AND leases.kind = gone.kind
  AND leases.incarnation = gone.incarnation
