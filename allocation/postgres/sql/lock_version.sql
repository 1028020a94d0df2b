-- Locked before any budget by whoever changes policies, so that versions are
-- committed in their order and a reader never skips one.
SELECT version
FROM ledger_version
FOR UPDATE
