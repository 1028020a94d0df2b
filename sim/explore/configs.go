package explore

import (
	"github.com/ration-dev/ration/allocation"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
	"github.com/ration-dev/ration/regionstore"
)

// Small are the configurations that a test explores to their end.
func Small() []Config {
	return []Config{
		lumpAlone(), twoLumps(), lumpAndFault(), lumpAndReplica(), lumpAndPrefetch(),
		reserveAlone(), twoReserves(), pacedAndListen(),
		twoShares(), lumpAndShare(), shareAndPrefetch(), shareAndFault(), shareAndReplica(), regrant(), regrantIsolated(),
		debt(), limits(), steppedClock(), float(),
	}
}

func intent(k lease.Kind) regionstore.Intent { return regionstore.Intent{Kind: k, LowerBeta: -1} }

func want(n lease.Tokens) regionstore.Intent {
	in := intent(lease.Lump)
	in.Want = n
	return in
}

func lower(k lease.Kind, x, beta lease.Tokens) regionstore.Intent {
	in := intent(k)
	in.LowerX, in.LowerBeta = lease.Rate{Tokens: x, Per: 1000 * tick}, beta
	return in
}

func each(ins ...regionstore.Intent) (all [][]regionstore.Intent) {
	for _, in := range ins {
		all = append(all, []regionstore.Intent{in})
	}
	return all
}

func lumps(n lease.Tokens) allocation.Target {
	return allocation.Target{Region: region, Lump: n, Lumps: true, Keep: lease.MaxTokens}
}

// share plans x thousandths of a token per tick, and a cap.
func share(k lease.Kind, x, beta lease.Tokens) allocation.Target {
	t := allocation.Target{Region: region}
	if k == lease.Reserve {
		t.Reserve = allocation.Share{X: x, Beta: beta}
	} else {
		t.Paced = allocation.Share{X: x, Beta: beta}
	}
	return t
}

func lumpAlone() Config {
	return Config{
		Name: "lump", Budgets: []policy.Budget{bucket(1, 2, 0, 2)}, Kinds: []lease.Kind{lease.Lump},
		Plans: []allocation.Target{lumps(2)}, Begins: each(want(2)), Drift: 1, Seqs: 2, Lives: 1,
		Close: true, Return: true, World: true,
	}
}

// twoLumps is a lump and its successor, while messages of both are about.
func twoLumps() Config {
	c := lumpAlone()
	c.Name, c.Lives, c.Return, c.World, c.Ticks = "lump and its successor", 2, false, false, 3
	return c
}

func lumpAndFault() Config {
	c := lumpAlone()
	c.Name, c.Crashes, c.Lives, c.Ticks = "lump, one store fault", 1, 2, 3
	c.Budgets = []policy.Budget{bucket(1, 2, 0, 1)}
	c.Close, c.Return, c.World = false, false, false
	c.Faults = []Fault{Restart, LoseRow}
	return c
}

// lumpAndReplica is a lump whose store restores an old copy, or fails over to
// one while the old primary goes on.
func lumpAndReplica() Config {
	c := lumpAndFault()
	c.Name, c.Faults, c.Seqs = "lump, an old copy", []Fault{Restore, FailOver}, 1
	return c
}

func lumpAndPrefetch() Config {
	c := lumpAlone()
	c.Name, c.Processes, c.Prefetch, c.Ticks = "lump, prefetch", 2, 1, 4
	c.World, c.Return, c.Seqs = false, false, 1
	return c
}

func reserveAlone() Config {
	return Config{
		Name: "reserve", Budgets: []policy.Budget{bucket(1, 2, 0, 2)}, Kinds: []lease.Kind{lease.Reserve},
		Plans:  []allocation.Target{share(lease.Reserve, 1000, 2), share(lease.Reserve, 0, 1)},
		Begins: each(intent(lease.Reserve), lower(lease.Reserve, 0, 1)), Drift: 1, Seqs: 2, Lives: 1,
		Close: true, World: true, Ticks: 4,
	}
}

// twoReserves is a share and its successor.
func twoReserves() Config {
	c := reserveAlone()
	c.Name, c.Lives, c.Ticks, c.World = "reserve and its successor", 2, 3, false
	c.Plans, c.Begins = c.Plans[:1], c.Begins[:1]
	return c
}

func pacedAndListen() Config {
	c := reserveAlone()
	c.Name, c.Kinds = "paced, heard while held", []lease.Kind{lease.Paced}
	c.Plans = []allocation.Target{share(lease.Paced, 500, 2), share(lease.Paced, 2000, 1)}
	c.Begins = each(intent(lease.Paced), lower(lease.Paced, 0, 1))
	c.Listen, c.Lives, c.Ticks, c.Rounding = true, 1, 2, 1
	return c
}

func twoShares() Config {
	c := reserveAlone()
	c.Name, c.Kinds = "reserve and paced", []lease.Kind{lease.Reserve, lease.Paced}
	both := share(lease.Reserve, 500, 1)
	both.Paced = allocation.Share{X: 1000, Beta: 1}
	c.Plans = []allocation.Target{both, share(lease.Paced, 1000, 2)}
	c.Begins = [][]regionstore.Intent{{lower(lease.Reserve, 0, 0), intent(lease.Paced)}, {intent(lease.Reserve), intent(lease.Paced)}}
	c.Ticks, c.Close, c.World, c.Rounding = 2, false, false, 1
	return c
}

func lumpAndShare() Config {
	c := reserveAlone()
	c.Name, c.Kinds = "lump and paced", []lease.Kind{lease.Paced, lease.Lump}
	t := share(lease.Paced, 500, 1)
	t.Lump, t.Lumps, t.Keep = 1, true, lease.MaxTokens
	c.Plans = []allocation.Target{t}
	c.Begins = [][]regionstore.Intent{{intent(lease.Paced), want(1)}, {want(2)}}
	c.Ticks, c.Close, c.World, c.Rounding = 2, false, false, 1
	return c
}

func shareAndPrefetch() Config {
	c := reserveAlone()
	c.Name = "reserve, prefetch in generations"
	c.Budgets = []policy.Budget{bucket(1, 8, 0, 3)}
	c.Plans = []allocation.Target{share(lease.Reserve, 1000, 8)}
	c.Begins = each(intent(lease.Reserve))
	c.Processes, c.Prefetch, c.Seqs, c.World, c.Ticks, c.Close = 2, 1, 1, false, 5, false
	return c
}

func shareAndFault() Config {
	c := reserveAlone()
	c.Name, c.Crashes, c.Lives, c.Close, c.World, c.Ticks = "reserve, one store fault", 1, 2, false, false, 3
	c.Budgets = []policy.Budget{bucket(1, 2, 0, 1)}
	c.Plans = []allocation.Target{share(lease.Reserve, 1000, 1)}
	c.Begins = each(intent(lease.Reserve))
	c.Faults = []Fault{Restart, LoseRow}
	return c
}

func shareAndReplica() Config {
	c := shareAndFault()
	c.Name, c.Faults, c.Seqs = "reserve, an old copy", []Fault{Restore, FailOver}, 1
	return c
}

func regrant() Config {
	c := shareAndFault()
	c.Name, c.Faults = "reserve, regranted after a restart", []Fault{Restart}
	c.Budgets = []policy.Budget{bucket(1, 4, 0, 2)}
	c.Budgets[0].OnStoreLoss = policy.Regrant
	c.Plans = []allocation.Target{share(lease.Reserve, 1000, 4)}
	in := intent(lease.Reserve)
	in.Regrant = true
	c.Begins = each(in)
	c.Processes, c.Prefetch, c.Seqs, c.Ticks = 1, 1, 1, 4
	return c
}

func regrantIsolated() Config {
	c := regrant()
	c.Name, c.Faults = "reserve, regranted beside an old one", []Fault{FailOver}
	c.Budgets = []policy.Budget{bucket(1, 2, 0, 2)}
	c.Budgets[0].OnStoreLoss = policy.Regrant
	c.Plans = []allocation.Target{share(lease.Reserve, 1000, 2)}
	c.Processes, c.Seqs, c.Ticks = 0, 2, 1
	return c
}

func debt() Config {
	c := lumpAlone()
	c.Name, c.Locals, c.Close = "lump, local admissions", 2, false
	c.Budgets[0].OnFailure = policy.Failure{Mode: policy.AllowLocal, Rate: lease.Rate{Tokens: 1, Per: 2 * tick}, Burst: 1}
	return c
}

func limits() Config {
	c := lumpAlone()
	c.Name, c.Changes, c.Ticks = "lump and reserve, limits changed", 1, 2
	c.Kinds = []lease.Kind{lease.Reserve, lease.Lump}
	c.Budgets = []policy.Budget{bucket(1, 2, 0, 2), bucket(1, 1, 0, 1), bucket(0, 0, 0, 2)}
	t := share(lease.Reserve, 1000, 1)
	t.Lump, t.Lumps, t.Keep = 1, true, lease.MaxTokens
	c.Plans = []allocation.Target{t}
	c.Begins = each(want(1), intent(lease.Reserve))
	c.Close, c.Return = false, false
	return c
}

func steppedClock() Config {
	c := reserveAlone()
	c.Name, c.Steps, c.Seqs, c.World, c.Close, c.Ticks = "reserve, stepped clock", 2, 1, false, false, 0
	c.Begins = each(intent(lease.Reserve))
	c.Plans = c.Plans[:1]
	c.Budgets = []policy.Budget{bucket(1, 2, 0, 3)}
	// A share that is installed while the store's clock is behind mints, once the
	// clock is set right, for the time by which it was: at most the drift.
	c.Rounding = 1
	return c
}

func float() Config {
	c := lumpAlone()
	c.Name, c.Budgets = "lump, with a float", []policy.Budget{bucket(1, 1, 1, 2)}
	return c
}

// Named returns the configuration of that name, of the small ones or of those
// that show what needs more than they have; it panics if there is none.
func Named(name string) Config {
	for _, c := range append(Small(), lateTakes(), prefetchAndFault()) {
		if c.Name == name {
			return c
		}
	}
	panic("explore: no configuration " + name)
}

// lateTakes has takes whose replies come late.
func lateTakes() Config {
	c := lumpAndPrefetch()
	c.Name, c.Late, c.Processes, c.Close, c.Ticks = "lump, late takes", true, 1, false, 0
	return c
}

// prefetchAndFault has processes that hold tokens of a row that is gone, beside
// others that hold some of the next.
func prefetchAndFault() Config {
	c := lumpAndPrefetch()
	c.Name, c.Crashes, c.Faults, c.Lives, c.Close = "lump, prefetch, a new row", 1, []Fault{Restart}, 2, false
	c.Budgets = []policy.Budget{bucket(1, 3, 0, 2)}
	c.Plans = []allocation.Target{lumps(3)}
	c.Begins = each(want(1), want(3))
	return c
}

// Large are the small configurations with more of everything, and without the
// shortcuts in time: not all of them end soon.
func Large() []Config {
	var large []Config
	for _, c := range append(Small(), lateTakes(), prefetchAndFault()) {
		c.Seqs, c.Ticks = c.Seqs+1, c.Ticks+min(c.Ticks, 2)
		large = append(large, c)
		slow := c
		slow.Name, slow.Lazy, slow.Seqs = c.Name+", lazy", true, c.Seqs-1
		large = append(large, slow)
		fast := c
		fast.Name, fast.Fast, fast.Drift, fast.Lives = c.Name+", fast, drift 2", true, 2, c.Lives+1
		fast.Rounding *= 2 // that of a stepped clock is the drift
		large = append(large, fast)
	}
	return large
}
