UPDATE ledger_version
SET version = $1
