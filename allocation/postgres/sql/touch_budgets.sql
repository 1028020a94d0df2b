-- Every transaction writes its budgets' rows, even one that changed nothing:
-- an answer that rests on what an earlier transaction wrote must wait until
-- that is durable, and only a commit that writes waits. (Locking a row writes
-- too, as Postgres stands; this does not rest on it.)
UPDATE budgets
SET next_due   = touched.next_due,
    written_at = touched.written_at
FROM unnest($1::bytea[], $2::bigint[], $3::bigint[])
    AS touched (name, next_due, written_at)
WHERE budgets.name = touched.name
