-- The budgets of one transaction, locked in order of name. The statements
-- that follow take a snapshot of their own, so they see what the transaction
-- before this one has committed.
SELECT name, version, next_due, policy
FROM budgets
WHERE name = ANY ($1::bytea[])
ORDER BY name
FOR UPDATE
