//go:build mutants

package explore_test

import (
	"testing"

	"github.com/ration-dev/ration/internal/mutant"
	"github.com/ration-dev/ration/sim/explore"
)

// Each rule of the protocol, broken on purpose, breaks an invariant within few
// steps. All of them can be expressed in these models.
func TestMutantsDie(t *testing.T) {
	const (
		lump     = "lump"
		prefetch = "lump, prefetch"
		reserve  = "reserve"
	)
	tried := map[mutant.Mutant]bool{}
	for _, c := range []struct {
		name   string
		broken mutant.Mutant
		in     []string
	}{
		{"anchor at the reply", mutant.AnchorAtReply, []string{lump, reserve}},
		{"anchor moved on retry", mutant.AnchorMovedOnRetry, []string{lump, reserve}},
		{"no guard", mutant.NoGuard, []string{lump, reserve}},
		{"deadline extended at send", mutant.ExtendedAtSend, []string{lump, reserve}},
		{"a reply of another sequence extends", mutant.OtherSequenceExtends, []string{lump, reserve}},
		{"install adds", mutant.InstallAdds, []string{lump, reserve}},
		{"install without the incarnation", mutant.InstallAnyIncarnation, []string{lump, reserve}},
		{"install creates a missing row", mutant.InstallCreatesRow, []string{"lump, one store fault", "reserve, one store fault"}},
		{"a replayed sequence is granted again", mutant.ReplayGrantsAgain, []string{lump}},
		{"an older sequence is processed", mutant.OlderSequenceProcessed, []string{lump, reserve}},
		{"returned is credited per delivery", mutant.ReturnCreditedPerDelivery, []string{lump}},
		{"returned is reported first", mutant.ReturnReportedFirst, []string{lump}},
		{"used counts what was taken", mutant.UsedCountsTaken, []string{prefetch}},
		{"close does not fence", mutant.CloseNotFenced, []string{reserve}},
		{"no replication id", mutant.NoReplicationID, []string{"lump, an old copy", "reserve, an old copy"}},
		{"an ended lease is revived", mutant.EndedRevived, []string{lump, reserve}},
		{"expiry credits the rest", mutant.ExpiryCredits, []string{lump}},
		{"late totals are credited", mutant.LateTotalsCredited, []string{lump}},
		{"the ceiling ignores outstanding", mutant.CeilingIgnoresOutstanding, []string{lump, reserve}},
		{"a shorter ttl brings reclaim forward", mutant.ShorterTTLReclaimsEarlier, []string{"lump and reserve, limits changed"}},
		{"a process's deadline counts from the reply", mutant.ProcessDeadlineAtReply, []string{"lump, late takes"}},
		{"use or give back is repeated", mutant.UseRepeated, []string{prefetch}},
		{"use or give back on a new row", mutant.UseOnNewRow, []string{"lump, prefetch, a new row"}},
		{"a share's expiry refunds", mutant.ShareExpiryRefunds, []string{reserve}},
		{"a share is granted anew too early", mutant.RegrantedEarly, []string{"reserve, one store fault"}},
		{"a share mints from the anchor", mutant.MintFromAnchor, []string{reserve}},
		{"x above r", mutant.XAboveR, []string{"paced, heard while held"}},
		{"a recall counts when sent", mutant.RecallCountedAtSend, []string{reserve}},
		{"shrinking returns tokens", mutant.ShrinkReturns, []string{reserve}},
		{"not_after follows the stepped clock", mutant.NotAfterStepped, []string{"reserve, stepped clock"}},
		{"n0 is added again", mutant.InitialAddedAgain, []string{reserve}},
	} {
		tried[c.broken] = true
		for _, in := range c.in {
			dies(t, c.name, c.broken, in)
		}
	}
	for m := mutant.None + 1; m < mutant.Count; m++ {
		if !tried[m] {
			t.Errorf("mutant %d was not tried", m)
		}
	}
}

func dies(t *testing.T, name string, broken mutant.Mutant, in string) {
	t.Helper()
	defer mutant.Enable(broken)()
	r := explore.Run(explore.Named(in), explore.Options{States: 400_000, Workers: 2, Exact: true})
	if r.Broken == nil {
		t.Errorf("%s lives: %v", name, r)
		return
	}
	t.Logf("%-44s %-34s %2d steps %7d states  %v", name, in, len(r.Trace), r.States, r.Broken)
}
