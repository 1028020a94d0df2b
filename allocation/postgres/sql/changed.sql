SELECT name, version, next_due, policy
FROM budgets
WHERE version > $1
ORDER BY version
LIMIT $2
