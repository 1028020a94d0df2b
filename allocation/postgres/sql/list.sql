SELECT name, version, policy
FROM budgets
WHERE name > $1::bytea
ORDER BY name
LIMIT $2
