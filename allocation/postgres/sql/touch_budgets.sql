UPDATE budgets
SET next_due = touched.next_due
FROM unnest($1::bytea[], $2::bigint[])
    AS touched (name, next_due)
WHERE budgets.name = touched.name
