package allocation

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/ration-dev/ration/lease"
)

func validItem() lease.Item {
	return lease.Item{
		Budget: "acme/search",
		Demand: 12.5,
		RTT:    time.Millisecond,
		Local:  []lease.LocalUse{{Source: "boot", Total: 3}},
		Leases: []lease.Report{
			{Kind: lease.Reserve, Incarnation: "r1", Seq: 1, X: perSecondRate(5), Beta: 5, Regrant: "r0"},
			{Kind: lease.Lump, Incarnation: "l1", Seq: 9, Used: 4, Returned: 1, Want: 10},
		},
	}
}

// Fault seen to be caught: any one line of itemCheck left out.
func TestEveryFieldOfAnItemIsBounded(t *testing.T) {
	if err := validateItem(0, validItem()); err != nil {
		t.Fatalf("a sound item is refused: %v", err)
	}
	over, long := lease.MaxTokens+1, strings.Repeat("i", 65)
	lump := func(it *lease.Item) *lease.Report { return &it.Leases[1] }
	for field, breakIt := range map[string]func(it *lease.Item){
		"budget":                 func(it *lease.Item) { it.Budget = "" },
		"demand":                 func(it *lease.Item) { it.Demand = math.NaN() },
		"demand_total":           func(it *lease.Item) { it.DemandTotal = -1 },
		"waiting":                func(it *lease.Item) { it.Waiting = over },
		"rtt":                    func(it *lease.Item) { it.RTT = -time.Second },
		"local":                  func(it *lease.Item) { it.Local = make([]lease.LocalUse, 65) },
		"local[0].source":        func(it *lease.Item) { it.Local[0].Source = long },
		"local[0].total":         func(it *lease.Item) { it.Local[0].Total = -1 },
		"leases":                 func(it *lease.Item) { it.Leases = make([]lease.Report, 4) },
		"leases[1].kind":         func(it *lease.Item) { lump(it).Kind = lease.Reserve },
		"leases[1].incarnation":  func(it *lease.Item) { lump(it).Incarnation = "" },
		"leases[1].seq":          func(it *lease.Item) { lump(it).Seq = 0 },
		"leases[1].used":         func(it *lease.Item) { lump(it).Used = -1 },
		"leases[1].returned":     func(it *lease.Item) { lump(it).Returned = over },
		"leases[1].beta":         func(it *lease.Item) { lump(it).Beta = -1 },
		"leases[1].prefetched":   func(it *lease.Item) { lump(it).Prefetched = over },
		"leases[1].want":         func(it *lease.Item) { lump(it).Want = over },
		"leases[1].regrant":      func(it *lease.Item) { lump(it).Regrant = "l0" },
		"leases[0].regrant":      func(it *lease.Item) { it.Leases[0].Regrant = "r1" },
		"leases[0].x.tokens":     func(it *lease.Item) { it.Leases[0].X.Tokens = over },
		"leases[0].x.per":        func(it *lease.Item) { it.Leases[0].X.Per = 0 },
		"leases[0].kind":         func(it *lease.Item) { it.Leases[0].Kind = 4 },
		"leases[0].incarnation ": func(it *lease.Item) { it.Leases[0].Incarnation = "a\x00b" },
		"leases[0].seq ":         func(it *lease.Item) { it.Leases[0].Seq = math.MaxUint64 },
		"leases[0].x.per ":       func(it *lease.Item) { it.Leases[0].X.Per = time.Nanosecond },
		"leases[0].x.per  ":      func(it *lease.Item) { it.Leases[0].X.Per = lease.MaxPeriod + time.Second },
		"demand ":                func(it *lease.Item) { it.Demand = math.Inf(1) },
		"demand  ":               func(it *lease.Item) { it.Demand = -0.5 },
		"demand   ":              func(it *lease.Item) { it.Demand = 1e300 },
		"budget ":                func(it *lease.Item) { it.Budget = "\xff" },
		"budget  ":               func(it *lease.Item) { it.Budget = strings.Repeat("b", 257) },
		"rtt ":                   func(it *lease.Item) { it.RTT = 2 * time.Hour },
	} {
		it := validItem()
		breakIt(&it)
		err := validateItem(7, it)
		want := "items[7]." + strings.TrimSpace(field)
		if err == nil || err.Field != want || err.Code != lease.Invalid || err.Reason == "" {
			t.Errorf("%s broken: %v, want an Invalid that names %s", field, err, want)
		}
	}
}

func TestRequestsAreRefusedWholeOnlyForTheirOwnFaults(t *testing.T) {
	many := make([]lease.Item, lease.MaxItems+1)
	for field, req := range map[string]lease.SyncRequest{
		"region":  {},
		"region ": {Region: strings.Repeat("r", 257)},
		"items":   {Region: "eu", Items: many},
	} {
		err := validateRequest(req)
		if err == nil || err.Field != strings.TrimSpace(field) {
			t.Errorf("%v, want an error about %s", err, field)
		}
	}
	if err := validateRequest(lease.SyncRequest{Region: "eu", Items: many[1:]}); err != nil {
		t.Errorf("the largest batch is refused: %v", err)
	}
}
