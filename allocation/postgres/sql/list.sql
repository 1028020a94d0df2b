SELECT name, version, next_due, policy
FROM budgets
WHERE name > $1::bytea
ORDER BY name
LIMIT $2
