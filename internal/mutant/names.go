// Package mutant names the deliberate faults of the protocol.
// Production steps ask On at the place where each rule stands; without the
// build tag "mutants" the answer is the constant false and the compiler
// removes the question. Tests built with the tag switch one on and must see
// an invariant break: a rule whose absence no test notices is not tested.
package mutant

// Mutant is one broken rule.
type Mutant uint8

// The faults.
const (
	None                      Mutant = iota
	AnchorAtReply                    // the deadline counts from the reply
	AnchorMovedOnRetry               // a retry moves the anchor
	NoGuard                          // the ledger reclaims at the deadline
	ExtendedAtSend                   // begin moves the deadline
	OtherSequenceExtends             // a reply to another sequence is installed
	InstallAdds                      // install adds instead of replacing
	InstallAnyIncarnation            // install does not compare incarnations
	InstallCreatesRow                // install makes a missing row
	ReplayGrantsAgain                // a replayed sequence is processed again
	OlderSequenceProcessed           // an older sequence is processed
	ReturnCreditedPerDelivery        // returned is credited as if a delta
	ReturnReportedFirst              // returned is reported before it is taken out
	UsedCountsTaken                  // used counts prefetched tokens
	CloseNotFenced                   // tokens can be taken after close
	NoReplicationID                  // the row's replication id is not compared
	EndedRevived                     // an ended lease is granted again
	ExpiryCredits                    // expiry gives the rest back to the pool
	LateTotalsCredited               // late totals of a bucket's lease are credited
	CeilingIgnoresOutstanding        // A <= C instead of A + O <= C
	ShorterTTLReclaimsEarlier        // a shorter ttl brings reclaim forward
	ProcessDeadlineAtReply           // a process counts from the take's reply
	UseRepeated                      // use or give back repeated after an unknown outcome
	UseOnNewRow                      // use or give back applied under another incarnation
	ShareExpiryRefunds               // a share's balance is credited at expiry
	RegrantedEarly                   // a share is granted anew before the old one ended
	MintFromAnchor                   // a share mints from the anchor
	XAboveR                          // the sum of x may exceed the rate
	RecallCountedAtSend              // a cut frees room before it is acknowledged
	ShrinkReturns                    // shrinking a share credits tokens
	NotAfterStepped                  // not_after follows the stepped clock
	InitialAddedAgain                // a repeated install adds n0 again

	// Count is one more than the last mutant.
	Count
)
