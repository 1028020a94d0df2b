package errorbound

import (
	"fmt"
	"math/big"
	"strconv"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

const quotaMintsNothing = "a quota mints nothing: its tokens are there at the window's start"

func tokens(name string, n lease.Tokens) Input {
	return Input{name, strconv.FormatInt(int64(n), 10)}
}

func number(name string, n int) Input { return Input{name, strconv.Itoa(n)} }

func lasting(name string, d time.Duration) Input { return Input{name, policy.FormatDuration(d)} }

func ratio(name string, r lease.Rate) Input { return Input{name, policy.FormatRate(r)} }

// rho is the clock error as a decimal.
func (m *model) rho() string {
	return strconv.FormatFloat(float64(m.deploy.Clocks.DriftPPM)/million, 'f', -1, 64)
}

// each writes a factor that is left out where it is 1.
func each(n int, format string, args ...any) string {
	s := fmt.Sprintf(format, args...)
	if n == 1 {
		return s
	}
	return fmt.Sprintf("%d·%s", n, s)
}

// fastText writes what model.fast computes.
func (m *model) fastText(r lease.Rate, w time.Duration) string {
	s := fmt.Sprintf("%s·%s·(1 + %s)", policy.FormatRate(r), policy.FormatDuration(w), m.rho())
	if w > 0 && policy.OverTick(r).Sign() > 0 {
		s = fmt.Sprintf("(%s + %s·%s - 1)", s, policy.FormatRate(r), policy.FormatDuration(lease.Tick))
	}
	return s
}

// shownText is what a local allowance mints in w as its clock may show it.
func (m *model) shownText(w time.Duration) string {
	if w <= 0 {
		return "0"
	}
	return fmt.Sprintf("%s·(%s·(1 + %s) + %s)", policy.FormatRate(m.budget.OnFailure.Rate), policy.FormatDuration(w), m.rho(), policy.FormatDuration(lease.Tick))
}

func (m *model) rateText() string { return policy.FormatRate(m.rate) }

func (m *model) windowText() string { return policy.FormatDuration(m.window) }

func (m *model) float() Cause {
	c := Cause{
		Name: Float, Tokens: m.budget.Float, Inputs: []Input{tokens("float", m.budget.Float)},
		Formula: strconv.FormatInt(int64(m.budget.Float), 10), Zero: "over_admission: {tokens: 0}",
	}
	if m.quota {
		c.Zero = "a quota takes no float"
	}
	return c
}

func (m *model) independence() Cause {
	c := Cause{Name: Independence, Zero: "strategy " + string(m.budget.Strategy) + " has one contract for all regions"}
	if m.budget.Strategy != policy.Independent {
		return c
	}
	contract := sum(whole(m.burst), minted(m.rate, m.window))
	c.Tokens = ceil(scale(contract, int64(m.regions-1)))
	c.Inputs = []Input{number("regions", m.regions), tokens("burst", m.burst), ratio("rate", m.rate)}
	c.Formula = fmt.Sprintf("(%d - 1)·(%d + %s·%s)", m.regions, m.burst, m.rateText(), m.windowText())
	if m.quota {
		c.Formula, c.Inputs = fmt.Sprintf("(%d - 1)·%d", m.regions, m.burst), []Input{number("regions", m.regions), tokens("quota", m.burst)}
	}
	c.Zero = "strategy static or dynamic"
	return c
}

// drift is what all that mints makes too much on fast clocks: every rate, the
// pool's and the shares', sums up to the pool's contract.
func (m *model) drift() Cause {
	c := Cause{Name: Drift, Zero: quotaMintsNothing}
	if m.quota {
		return c
	}
	fast := new(big.Rat).Mul(scale(minted(m.rate, m.window), int64(m.pools)), big.NewRat(m.deploy.Clocks.DriftPPM, million))
	c.Tokens = ceil(fast)
	c.Inputs = []Input{{"rho", m.rho()}, ratio("rate", m.rate), number("contracts", m.pools)}
	c.Formula = fmt.Sprintf("ceil(%s)", each(m.pools, "%s·%s·%s", m.rho(), m.rateText(), m.windowText()))
	c.Zero = "none: windows are not measured by the clocks that mint"
	c.Assumption = "no clock runs faster or slower by more"
	return c
}

// rounding is what a clock's reading may be too much by, of everything that
// mints: together they have the contracts' rate.
func (m *model) rounding() Cause {
	c := Cause{Name: Rounding, Zero: quotaMintsNothing}
	if m.quota {
		return c
	}
	tick := policy.FormatDuration(lease.Tick)
	c.Tokens = m.budget.RoundingSurcharge(m.pools)
	c.Inputs = []Input{ratio("rate", m.rate), number("contracts", m.pools), lasting("tick", lease.Tick)}
	c.Formula = fmt.Sprintf("max(1, ceil(%s))", each(m.pools, "%s·%s", m.rateText(), tick))
	c.Zero = "none: clocks are read in steps of " + tick
	return c
}

// ledgerStep: the pool mints a step at once, and no more than its ceiling
// holds.
func (m *model) ledgerStep() Cause {
	c := Cause{Name: LedgerStep, Zero: quotaMintsNothing}
	if m.quota {
		return c
	}
	step := scale(minted(m.rate, m.deploy.LedgerStep), int64(m.pools))
	c.Tokens = ceil(least(step, m.ceiling))
	c.Inputs = []Input{lasting("ledger step", m.deploy.LedgerStep), ratio("rate", m.rate), tokens("ceiling", ceil(m.ceiling))}
	c.Formula = fmt.Sprintf("min(%s, %d)", each(m.pools, "%s·%s", m.rateText(), policy.FormatDuration(m.deploy.LedgerStep)), ceil(m.ceiling))
	c.Zero = "the ledger's clock is governed: a step that a running replica sees mints nothing; keep two replicas running"
	c.Assumption = "at most one such step in a window"
	return c
}

func (m *model) storeStep() Cause {
	c := Cause{Name: StoreStep, Zero: "lumps mint nothing"}
	if m.quota {
		return c
	}
	// One store's shares have one contract's rate at most, and no more room than
	// their caps.
	c.Tokens = ceil(least(minted(m.rate, m.deploy.StoreStep), m.heldByOne()))
	c.Inputs = []Input{lasting("store step", m.deploy.StoreStep), ratio("rate", m.rate)}
	c.Formula = fmt.Sprintf("min(%s·%s, %d)", m.rateText(), policy.FormatDuration(m.deploy.StoreStep), ceil(m.heldByOne()))
	c.Zero = "agents bound their store's clock by their own; slew stores' clocks instead of stepping them"
	c.Assumption = "at most one such step in a window; a clock that is stepped back is not stepped forth again, or that is declared: a share installed meanwhile mints from too early an instant"
	return c
}

func (m *model) localStores() Cause {
	c := Cause{Name: LocalStores, Zero: "on_failure: {mode: deny}"}
	f := m.budget.OnFailure
	if f.Mode != policy.AllowLocal {
		return c
	}
	c.Tokens, _ = m.budget.LocalSurcharge(m.deploy.Deployment, m.regions, m.localWindow())
	bucket := fmt.Sprintf("%d + %s", f.Burst, m.shownText(m.localWindow()))
	if m.deploy.ReplicatedStores {
		if m.deploy.StoreIsolation == 0 {
			bucket = "2·(" + bucket + ")"
		} else {
			bucket += fmt.Sprintf(" + min(%s, %s)", bucket, m.shownText(m.deploy.StoreIsolation))
		}
	}
	c.Inputs = []Input{number("regions", m.regions), tokens("local burst", f.Burst), ratio("local rate", f.Rate)}
	c.Formula = each(m.regions, "floor(%s)", bucket)
	c.Assumption = "it is also used while a Sync is under way that takes longer than a decision waits, so an outage's length does not bound it"
	return c
}

// localWindow is the time in which local allowances are counted: a quota's
// longest window, for its buckets mint however long that is.
func (m *model) localWindow() time.Duration {
	if m.quota {
		return longestWindow(m.budget.Contract.Quota.Per)
	}
	return m.window
}

// longestWindow is the longest that a calendar window lasts, with an hour for
// a change of the clocks.
func longestWindow(p policy.Period) time.Duration {
	const day = 24 * time.Hour
	days := map[policy.Period]time.Duration{policy.Day: 1, policy.Week: 7, policy.Month: 31, policy.Year: 366}
	if n, ok := days[p]; ok {
		return n*day + 2*time.Hour
	}
	return time.Hour
}

func (m *model) localProcesses() Cause {
	c := Cause{Name: LocalProcesses, Zero: "on_failure: {mode: deny}"}
	f := m.budget.OnFailure
	if f.Mode != policy.AllowLocal {
		return c
	}
	_, c.Tokens = m.budget.LocalSurcharge(m.deploy.Deployment, m.regions, m.localWindow())
	c.Inputs = []Input{number("regions", m.regions), lasting("store outage", m.deploy.StoreOutage), ratio("local rate", f.Rate)}
	c.Formula = each(m.regions, "floor(min(%s, %d + %s))",
		m.shownText(m.deploy.StoreOutage), f.Burst, m.shownText(m.localWindow()))
	c.Zero = "no outage of a region's store is declared; or on_failure: {mode: deny}"
	c.Assumption = "a region has no more agents than each is told; outages of a store that touch one window last no longer together"
	return c
}

func (m *model) suspension() Cause {
	held, why := m.prefetch()
	all := m.regions * m.deploy.AgentsPerRegion
	suspended := min(m.deploy.Suspended, all)
	c := Cause{Name: Suspension, Tokens: saturated(new(big.Int).Mul(big.NewInt(int64(held)), big.NewInt(int64(suspended))))}
	c.Inputs = []Input{number("suspended", suspended), tokens("prefetch", held)}
	c.Formula = fmt.Sprintf("%d·%d", suspended, held)
	c.Zero = "no suspension of machines is declared"
	if m.deploy.Suspended > 0 {
		c.Zero = "do not suspend the machines that agents run on"
	}
	c.Assumption = "prefetch of a process: " + why + "; no decision is under way in it that puts its cost aside: over several slots of the store, or while one of its budgets asks the local allowance"
	return c
}

// staleStore is what a store gives twice that comes back as it was, unseen:
// what left the wallet since, and what an isolated old primary still spends.
func (m *model) staleStore() Cause {
	c := Cause{Name: StaleStore, Zero: "scripts check the store's replication id: what comes back old is void"}
	if !m.deploy.Unfenced {
		return c
	}
	times := m.deploy.Failovers
	if times == 0 {
		times = m.regions
	}
	isolated := m.isolated()
	one := sum(m.heldByOne(), m.fast(m.rate, isolated))
	held := fmt.Sprintf("%d + %s", ceil(m.heldByOne()), m.fastText(m.rate, isolated))
	c.Formula = each(times, "ceil(%s)", held)
	known := !m.deploy.ReplicatedStores || m.deploy.StoreIsolation > 0
	if known && !m.deploy.SpendRate.Zero() {
		lag := m.deploy.StoreLag
		if m.deploy.ReplicatedStores {
			lag = longer(lag, m.deploy.StoreIsolation)
		}
		one = least(one, minted(m.deploy.SpendRate, lag))
		c.Formula = each(times, "ceil(min(%s, %s·%s))", held, policy.FormatRate(m.deploy.SpendRate), policy.FormatDuration(lag))
	}
	if local := m.budget.OnFailure; local.Mode == policy.AllowLocal {
		one = sum(one, whole(local.Burst))
		c.Formula += fmt.Sprintf(" + %s", each(times, "%d", local.Burst))
	}
	c.Tokens = saturated(new(big.Int).Mul(big.NewInt(int64(ceil(one))), big.NewInt(int64(times))))
	c.Inputs = []Input{number("fail-overs", times), lasting("store lag", m.deploy.StoreLag), ratio("spend rate", m.deploy.SpendRate), lasting("isolation", m.deploy.StoreIsolation)}
	c.Zero = "allow INFO in scripts"
	c.Assumption = "no more stores come back old in a window, nor shortly before it"
	return c
}

// isolated is how long within the window an old primary may go on.
func (m *model) isolated() time.Duration {
	switch {
	case !m.deploy.ReplicatedStores:
		return 0
	case m.deploy.StoreIsolation > 0:
		return min(m.window, m.deploy.StoreIsolation)
	}
	return m.window
}

func (m *model) regranted() Cause {
	c := Cause{Name: RegrantedShare}
	switch {
	case m.quota:
		c.Zero = "a quota has no shares"
	case m.budget.OnStoreLoss == policy.Wait:
		c.Zero = "on_store_loss: wait"
	case !m.deploy.ReplicatedStores:
		c.Zero = "stores are standalone: a restart proves the old balance gone"
	default:
		c.Tokens = m.budget.RegrantSurcharge(m.deploy.Deployment, m.regions, m.window)
		c.Zero = "on_store_loss: wait"
		c.Assumption = "each region's store fails over at most once in a window and the isolation before it"
		c.Inputs = []Input{number("regions", m.regions), lasting("isolation", m.deploy.StoreIsolation), ratio("rate", m.rate), tokens("burst", m.burst)}
		float, times := lease.Tokens(0), m.regions
		switch m.budget.Strategy {
		case policy.Dynamic:
			float = m.budget.Float
		case policy.Static:
			times = 1
		}
		c.Formula = each(times, "ceil(%d + %d + %s)", m.burst, float,
			m.fastText(m.rate, m.budget.RegrantWindow(m.deploy.Deployment, m.window)))
	}
	return c
}

// ledgerLoss: the pool as restored may have what was granted since, at most
// what a pool can have; and shares that it does not know go on minting, beside
// those it then grants, until they die.
func (m *model) ledgerLoss() Cause {
	c := Cause{Name: LedgerLoss, Zero: "commits are replicated before they are answered"}
	if !m.deploy.AsyncLedger {
		return c
	}
	unknown := min(m.window, m.life)
	lost := sum(m.ceiling, scale(m.fast(m.rate, unknown), int64(m.pools)))
	c.Tokens = ceil(lost)
	c.Inputs = []Input{tokens("ceiling", ceil(m.ceiling)), ratio("rate", m.rate), lasting("longest life", m.life)}
	c.Formula = fmt.Sprintf("ceil(%d + %s)", ceil(m.ceiling), each(m.pools, "%s", m.fastText(m.rate, unknown)))
	c.Zero = "replicate the database synchronously, with the standby that is promoted"
	c.Assumption = "at most one fail-over in a window and the life of a lease before it; one lost commit may hold every token, so the lag does not matter"
	return c
}

func (m *model) noCut() Cause {
	return Cause{Name: LimitCut, Zero: "the limit is not being cut"}
}

// never are the causes that the protocol makes 0, with how.
func (m *model) never() []Cause {
	zero := []Cause{
		{Name: Crash, Zero: "what a crashed or silent holder has left is written off, never credited"},
		{Name: Duplicate, Zero: "messages carry totals, and a request id is granted once"},
		{Name: LateReport, Zero: "late totals of a bucket's lease are recorded and credited to nothing"},
	}
	if m.quota {
		zero[2].Zero = "late totals are credited once, to the window they were cut from, whose pool never mints"
	}
	return zero
}

// windowEdge: a step of the calendar's clock brings the end of a window before
// the deadlines of its leases, which may be all of it.
func (m *model) windowEdge() Cause {
	c := Cause{Name: WindowEdge, Zero: "a lease's deadline is never later than its window's end less the guard"}
	if max(m.deploy.CalendarStep, m.deploy.LedgerStep) == 0 {
		return c
	}
	c.Tokens = ceil(m.ceiling)
	c.Formula = each(m.pools, "%d", m.burst)
	c.Inputs = []Input{lasting("calendar step", max(m.deploy.CalendarStep, m.deploy.LedgerStep)), tokens("quota", m.burst)}
	c.Zero = "slew the database's clock instead of stepping it"
	c.Assumption = "at most one such step over the beginning of a window; leases of the window before live on for at most lease.ttl"
	return c
}
