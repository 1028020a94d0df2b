package explore_test

import (
	"testing"

	"github.com/ration-dev/ration/sim/explore"
)

func TestSmall(t *testing.T) {
	for _, c := range explore.Small() {
		r := explore.Run(c, explore.Options{States: 300_000, Workers: 2})
		t.Log(r)
		if r.Broken != nil {
			t.Errorf("%s: %v", c.Name, r.Broken)
		}
	}
}
