package explore

import (
	"time"

	"github.com/ration-dev/ration/allocation"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
	"github.com/ration-dev/ration/regionstore"
)

// Small are the configurations that a test explores to their end.
func Small() []Config {
	return []Config{
		lumpAlone(), lumpAndFault(), lumpAndPrefetch(), reserveAlone(), pacedAndListen(),
		twoShares(), lumpAndShare(), shareAndPrefetch(), shareAndFault(), regrant(), regrantIsolated(),
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
		Plans: []allocation.Target{lumps(2)}, Begins: each(want(2)), Drift: 1, Seqs: 3, Lives: 2,
		Close: true, Return: true, World: true,
	}
}

func lumpAndFault() Config {
	c := lumpAlone()
	c.Name, c.Crashes, c.Seqs, c.Lives = "lump, one store fault", 1, 2, 2
	c.Close = false
	c.Faults = []Fault{Restart, LoseRow, Restore, FailOver}
	return c
}

func lumpAndPrefetch() Config {
	c := lumpAlone()
	c.Name, c.Seqs, c.Lives = "lump, prefetch", 2, 1
	c.Processes, c.Prefetch = 2, 1
	return c
}

func reserveAlone() Config {
	return Config{
		Name: "reserve", Budgets: []policy.Budget{bucket(1, 2, 0, 2)}, Kinds: []lease.Kind{lease.Reserve},
		Plans:  []allocation.Target{share(lease.Reserve, 1000, 2), share(lease.Reserve, 0, 1)},
		Begins: each(intent(lease.Reserve), lower(lease.Reserve, 0, 1)), Drift: 1, Seqs: 3, Lives: 2,
		Close: true, World: true, Rounding: 1,
	}
}

func pacedAndListen() Config {
	c := reserveAlone()
	c.Name, c.Kinds = "paced, heard while held", []lease.Kind{lease.Paced}
	c.Plans = []allocation.Target{share(lease.Paced, 500, 2), share(lease.Paced, 2000, 1)}
	c.Begins = each(intent(lease.Paced), lower(lease.Paced, 0, 1))
	c.Listen, c.Lives = true, 1
	return c
}

func twoShares() Config {
	c := reserveAlone()
	c.Name, c.Kinds = "reserve and paced", []lease.Kind{lease.Reserve, lease.Paced}
	both := share(lease.Reserve, 500, 1)
	both.Paced = allocation.Share{X: 1000, Beta: 1}
	c.Plans = []allocation.Target{both, share(lease.Paced, 1000, 2)}
	c.Begins = [][]regionstore.Intent{{intent(lease.Reserve), intent(lease.Paced)}, {lower(lease.Reserve, 0, 0)}}
	c.Seqs, c.Lives, c.Close = 2, 1, false
	return c
}

func lumpAndShare() Config {
	c := reserveAlone()
	c.Name, c.Kinds = "lump and paced", []lease.Kind{lease.Paced, lease.Lump}
	t := share(lease.Paced, 500, 1)
	t.Lump, t.Lumps, t.Keep = 1, true, lease.MaxTokens
	c.Plans = []allocation.Target{t}
	c.Begins = [][]regionstore.Intent{{intent(lease.Paced), want(1)}, {want(2)}}
	c.Seqs, c.Lives, c.Return = 2, 1, true
	return c
}

func shareAndPrefetch() Config {
	c := reserveAlone()
	c.Name = "reserve, prefetch in generations"
	c.Budgets = []policy.Budget{bucket(1, 8, 0, 3)}
	c.Plans = []allocation.Target{share(lease.Reserve, 1000, 8)}
	c.Begins = each(intent(lease.Reserve))
	c.Processes, c.Prefetch, c.Seqs, c.Lives, c.World = 2, 1, 1, 1, false
	return c
}

func shareAndFault() Config {
	c := reserveAlone()
	c.Name, c.Crashes, c.Seqs, c.Lives, c.Close = "reserve, one store fault", 1, 2, 2, false
	c.Begins = each(intent(lease.Reserve))
	c.Faults = []Fault{Restart, LoseRow, Restore, FailOver}
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
	c.Processes, c.Prefetch, c.Seqs = 1, 1, 1
	return c
}

func regrantIsolated() Config {
	c := regrant()
	c.Name, c.Faults = "reserve, regranted beside an old one", []Fault{FailOver}
	c.Budgets = []policy.Budget{bucket(1, 2, 0, 2)}
	c.Budgets[0].OnStoreLoss = policy.Regrant
	c.Plans = []allocation.Target{share(lease.Reserve, 1000, 2)}
	c.Processes, c.Seqs = 0, 2
	return c
}

func debt() Config {
	c := lumpAlone()
	c.Name, c.Locals, c.Seqs, c.Lives, c.Close = "lump, local admissions", 2, 2, 1, false
	c.Budgets[0].OnFailure = policy.Failure{Mode: policy.AllowLocal, Rate: lease.Rate{Tokens: 1, Per: 2 * tick}, Burst: 1}
	return c
}

func limits() Config {
	c := lumpAlone()
	c.Name, c.Changes, c.Seqs, c.Lives = "lump and share, limits changed", 2, 2, 1
	c.Kinds = []lease.Kind{lease.Reserve, lease.Lump}
	c.Budgets = []policy.Budget{bucket(1, 2, 0, 2), bucket(1, 1, 0, 1), bucket(0, 0, 0, 2)}
	t := share(lease.Reserve, 1000, 1)
	t.Lump, t.Lumps, t.Keep = 1, true, lease.MaxTokens
	c.Plans = []allocation.Target{t}
	c.Begins = each(want(1), intent(lease.Reserve))
	c.Close, c.Return, c.Rounding = false, false, 1
	return c
}

func steppedClock() Config {
	c := reserveAlone()
	c.Name, c.Steps, c.Seqs, c.Lives, c.World, c.Close = "reserve, stepped clock", 2, 1, 1, false, false
	c.Begins = each(intent(lease.Reserve))
	c.Plans = c.Plans[:1]
	c.Budgets = []policy.Budget{bucket(1, 2, 0, 3)}
	return c
}

func float() Config {
	c := lumpAlone()
	c.Name, c.Budgets, c.Lives = "lump, with a float", []policy.Budget{bucket(1, 1, 1, 2)}, 1
	return c
}

var _ = time.Second
