// Package storetest is what every regionstore.Store must pass: a conformance
// suite (Run), invariants 5 to 10 of the design on a model of the ledger and of
// processes (World), and random transcripts that two stores must answer alike
// (Generate, Compare).
package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/regionstore"
	"github.com/ration-dev/ration/regionstore/memory"
)

// Start is the store's time at the start of every test: far enough ahead that
// no real server takes a key's expiry for past.
const Start lease.Time = 4_000_000_000_000_000

// FirstLife is the replication id at the start of every test.
const FirstLife = "life-0"

// Config is what stores under test run with. Rows live longer than any test's
// clock moves.
func Config() regionstore.Config {
	c := regionstore.DefaultConfig()
	c.KeepMargin = 10000 * time.Hour
	return c
}

// Subject is a store under test with the levers that tests pull. The store's
// clock stands at Start until it is set, its replication id is FirstLife until
// another life begins; an adapter for a real server passes both as arguments
// that only tests set.
type Subject struct {
	Store regionstore.Store
	// SetTime sets the store's clock, forward or back.
	SetTime func(lease.Time)
	// Restart empties the store and begins another life.
	Restart func(replid string)
	// Save keeps a copy of the content; Restore puts the last one back, if there
	// is one, and begins another life.
	Save    func()
	Restore func(replid string)
	// LoseRow removes one budget's row.
	LoseRow func(budget string)
}

// Make makes an empty Subject for one test, with the given config.
type Make func(t testing.TB, config regionstore.Config) *Subject

// Memory is the Subject of the memory store, the reference.
func Memory(config regionstore.Config) *Subject {
	now, life := Start, FirstLife
	var saved *memory.Snapshot
	s := memory.New(func() lease.Time { return now }, func() string { return life }, config)
	return &Subject{
		Store:   s,
		SetTime: func(t lease.Time) { now = t },
		Restart: func(id string) { life = id; s.Restart() },
		Save:    func() { saved = s.Snapshot() },
		Restore: func(id string) {
			life = id
			if saved != nil {
				s.Restore(saved)
				return
			}
			s.Restart()
		},
		LoseRow: s.LoseRow,
	}
}

// must is for errors that only a broken harness makes.
func must[T any](v T, err error) T {
	if err != nil {
		panic(fmt.Sprintf("store failed: %v", err))
	}
	return v
}
