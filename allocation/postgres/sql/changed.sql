SELECT name, version, policy
FROM budgets
WHERE version > $1
ORDER BY version
LIMIT $2
