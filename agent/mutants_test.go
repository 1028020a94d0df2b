//go:build mutants

package agent

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/ration-dev/ration/internal/mutant"
)

// recorder turns the first failure of a hazard into a panic that kills reads.
type recorder struct{ rapid.TB }

type failure string

func (r recorder) Fatalf(format string, args ...any) { panic(failure(fmt.Sprintf(format, args...))) }

func (r recorder) Errorf(format string, args ...any) { panic(failure(fmt.Sprintf(format, args...))) }

// kills reports what a hazard failed with under a mutant; "" if it lived.
func kills(t *testing.T, m mutant.Mutant, hazard func(rapid.TB)) (why failure) {
	defer mutant.Enable(m)()
	defer func() {
		if v := recover(); v != nil {
			why = v.(failure)
		}
	}()
	hazard(recorder{t})
	return ""
}

func TestMutantsDie(t *testing.T) {
	for name, c := range map[string]struct {
		mutant mutant.Mutant
		hazard func(rapid.TB)
	}{
		"process deadline at reply": {mutant.ProcessDeadlineAtReply, slowReply},
		"use repeated":              {mutant.UseRepeated, unknownSettlement},
		"not_after stepped":         {mutant.NotAfterStepped, steppedClock},
		"returned reported first":   {mutant.ReturnReportedFirst, returning},
		"any incarnation installed": {mutant.InstallAnyIncarnation, lateReplies},
		"anchor at reply":           {mutant.AnchorAtReply, lateReplies},
	} {
		why := kills(t, c.mutant, c.hazard)
		if why == "" {
			t.Errorf("%s: no invariant broke", name)
		}
		t.Logf("%s: %s", name, why)
	}
}
