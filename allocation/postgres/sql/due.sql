SELECT name
FROM budgets
WHERE next_due <> 0
  AND next_due <= $1
ORDER BY next_due
LIMIT $2
FOR UPDATE SKIP LOCKED
