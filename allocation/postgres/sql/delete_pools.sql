DELETE FROM pools
USING unnest($1::bytea[], $2::bigint[])
    AS gone (budget, window_start)
WHERE pools.budget = gone.budget
  AND pools.window_start = gone.window_start
