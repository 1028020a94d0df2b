// Package hazards tests what no part can show alone: a region's store, an agent
// and a ledger on real servers that are killed between any two steps of the
// protocol. It has no code of its own.
package hazards
