INSERT INTO budgets (name, version, policy, next_due)
SELECT name, version, policy::json, next_due
FROM unnest($1::bytea[], $2::bigint[], $3::text[], $4::bigint[])
    AS row (name, version, policy, next_due)
ON CONFLICT (name) DO UPDATE SET
    version  = excluded.version,
    policy   = excluded.policy,
    next_due = excluded.next_due
