package proof_test

import "github.com/ration-dev/ration/internal/mutant"

// fate is where a mutant dies.
type fate struct {
	mutant mutant.Mutant
	name   string
	// elsewhere names the test that kills it, and why the simulator cannot;
	// empty where the simulator does.
	elsewhere string
}

// fates has every mutant, in order.
var fates = []fate{
	{mutant.AnchorAtReply, "anchor at the reply", ""},
	{mutant.AnchorMovedOnRetry, "anchor moved on retry", ""},
	{mutant.NoGuard, "no guard", ""},
	{mutant.ExtendedAtSend, "deadline extended at send", ""},
	{mutant.OtherSequenceExtends, "a reply of another sequence extends", ""},
	{mutant.InstallAdds, "install adds", ""},
	{mutant.InstallAnyIncarnation, "install without the incarnation", ""},
	{mutant.InstallCreatesRow, "install creates a missing row", ""},
	{mutant.ReplayGrantsAgain, "replayed sequence granted again", ""},
	{mutant.OlderSequenceProcessed, "older sequence processed", ""},
	{mutant.ReturnCreditedPerDelivery, "returned credited per delivery", ""},
	{mutant.ReturnReportedFirst, "returned reported first", ""},
	{mutant.UsedCountsTaken, "used counts what was taken", ""},
	{mutant.CloseNotFenced, "close not fenced", ""},
	{mutant.NoReplicationID, "no replication id check", ""},
	{mutant.EndedRevived, "an ended lease revived", ""},
	{mutant.ExpiryCredits, "expiry credits the rest", ""},
	{mutant.LateTotalsCredited, "late totals credited", ""},
	{mutant.CeilingIgnoresOutstanding, "ceiling ignores outstanding", ""},
	{mutant.ShorterTTLReclaimsEarlier, "shorter ttl reclaims earlier", ""},
	{mutant.ProcessDeadlineAtReply, "process deadline at the reply", ""},
	{mutant.UseRepeated, "use or give back repeated", ""},
	{mutant.UseOnNewRow, "use or give back on a new row", ""},
	{mutant.ShareExpiryRefunds, "a share's expiry refunds", ""},
	{mutant.RegrantedEarly, "regranted before the old one ended", ""},
	{mutant.MintFromAnchor, "minting from the anchor", ""},
	{mutant.XAboveR, "x above r", ""},
	{mutant.RecallCountedAtSend, "recall counted at send", ""},
	{mutant.ShrinkReturns, "shrinking returns tokens", ""},
	{mutant.NotAfterStepped, "not_after from the stepped clock", ""},
	{mutant.InitialAddedAgain, "n0 added by a repeated install", ""},
}
