package storetest_test

import (
	"fmt"

	"github.com/ration-dev/ration/regionstore"
	"github.com/ration-dev/ration/regionstore/storetest"
)

// reached lists what transcripts are to exercise: each step with each outcome
// that it has.
var reached = []string{
	"open created", "open void", "open kept",
	"begin 1", "begin 2", "begin 3", "begin 4", "begin 6",
	"install 1", "install 2", "install 3", "install 4",
	"take", "take short", "take missing", "take parts", "take several parts", "take replayed", "take conflict",
	"refill 1", "refill 2", "refill 5", "refill parts",
	"settle 1", "settle 2", "settle 3",
	"return 1", "return 2", "return 3", "return 4",
	"close 1", "close 2", "close 3",
	"local 1", "local 2", "local 5",
	"read 1", "read 2",
}

func count(seen map[string]int, op storetest.Op, reply any) {
	see := func(format string, args ...any) { seen[fmt.Sprintf(format, args...)]++ }
	switch r := reply.(type) {
	case regionstore.OpenReply:
		switch {
		case r.Void:
			see("open void")
		case r.Created:
			see("open created")
		default:
			see("open kept")
		}
	case regionstore.BeginReply:
		for _, b := range r.Reports {
			see("begin %d", b.Outcome)
		}
	case regionstore.InstallReply:
		for _, o := range r.Outcomes {
			see("install %d", o)
		}
	case regionstore.TakeReply:
		countTake(see, r)
	case []regionstore.TakeResult:
		for _, res := range r {
			see("refill %d", res.Outcome)
			if len(res.Parts) > 0 {
				see("refill parts")
			}
		}
	case []regionstore.Outcome:
		for _, o := range r {
			see("settle %d", o)
		}
	case regionstore.View:
		if op.Return != nil {
			see("return %d", r.Outcome)
		} else {
			see("close %d", r.Outcome)
		}
	case regionstore.LocalReply:
		see("local %d", r.Outcome)
	case []regionstore.View:
		for _, v := range r {
			see("read %d", v.Outcome)
		}
	case error:
		see("error %v", r)
	}
}

func countTake(see func(string, ...any), r regionstore.TakeReply) {
	switch {
	case r.Conflict:
		see("take conflict")
	case r.Replayed:
		see("take replayed")
	case r.Took:
		see("take")
	}
	for _, res := range r.Results {
		switch {
		case res.Outcome == regionstore.Short:
			see("take short")
		case res.Outcome == regionstore.Missing:
			see("take missing")
		case len(res.Parts) > 1:
			see("take several parts")
		case len(res.Parts) > 0:
			see("take parts")
		}
	}
}
