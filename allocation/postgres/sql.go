package postgres

import _ "embed"

var (
	//go:embed sql/lock.sql
	sqlLock string
	//go:embed sql/list.sql
	sqlList string
	//go:embed sql/changed.sql
	sqlChanged string
	//go:embed sql/due.sql
	sqlDue string

	//go:embed sql/lock_version.sql
	sqlLockVersion string
	//go:embed sql/put_version.sql
	sqlPutVersion string
	//go:embed sql/put_budgets.sql
	sqlPutBudgets string
	//go:embed sql/touch_budgets.sql
	sqlTouchBudgets string

	//go:embed sql/load_pools.sql
	sqlLoadPools string
	//go:embed sql/insert_pools.sql
	sqlInsertPools string
	//go:embed sql/update_pools.sql
	sqlUpdatePools string
	//go:embed sql/delete_pools.sql
	sqlDeletePools string

	//go:embed sql/load_leases.sql
	sqlLoadLeases string
	//go:embed sql/insert_leases.sql
	sqlInsertLeases string
	//go:embed sql/update_leases.sql
	sqlUpdateLeases string
	//go:embed sql/delete_leases.sql
	sqlDeleteLeases string

	//go:embed sql/load_regions.sql
	sqlLoadRegions string
	//go:embed sql/insert_regions.sql
	sqlInsertRegions string
	//go:embed sql/update_regions.sql
	sqlUpdateRegions string
	//go:embed sql/delete_regions.sql
	sqlDeleteRegions string

	//go:embed sql/load_locals.sql
	sqlLoadLocals string
	//go:embed sql/insert_locals.sql
	sqlInsertLocals string
	//go:embed sql/update_locals.sql
	sqlUpdateLocals string
	//go:embed sql/delete_locals.sql
	sqlDeleteLocals string
)

// The transactions' frames. A ledger's transaction is READ COMMITTED whatever
// the server's default: each statement after the lock sees what the lock's
// last holder committed.
const (
	sqlBegin     = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
	sqlBeginView = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
	sqlCommit    = "COMMIT"
	sqlRollback  = "ROLLBACK"

	sqlVersion = "SELECT version FROM ledger_version"
)
