package batch_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/ration-dev/ration/sim/batch"
	"github.com/ration-dev/ration/sim/scenario"
)

// shortened scenarios take minutes as they are; the test plays their
// beginning. `make gallery` plays everything, with all seeds.
var shortened = map[string][]scenario.Setting{
	"diurnal-three-zones.yaml": {{Field: "duration", Value: "1h"}},
}

// Every file of the gallery keeps its thresholds with its first seed, breaks
// no invariant, and says what it shows.
func TestGallery(t *testing.T) {
	files, err := filepath.Glob("../scenarios/*.yaml")
	if err != nil || len(files) < 15 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		name := filepath.Base(file)
		t.Run(strings.TrimSuffix(name, ".yaml"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(string(text), "# What it shows: ") {
				t.Error("does not begin with a comment on what it shows")
			}
			s, err := scenario.Load(file, shortened[name]...)
			if err != nil {
				t.Fatal(err)
			}
			if s.Question == "" || len(s.Expect) == 0 {
				t.Error("has no question or no thresholds")
			}
			play(t, s)
		})
	}
}

func play(t *testing.T, s *scenario.Scenario) {
	j := batch.Job{Scenario: s, Strategies: s.Strategies, Seeds: s.Seeds[:1]}
	r, err := batch.Run(t.Context(), []batch.Job{j}, batch.Options{Parallel: runtime.GOMAXPROCS(0)})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range r.Scenarios[0].Thresholds {
		if !v.Kept {
			t.Errorf("%s: %s with %s", v.Place, v.Text, v.Strategy)
			t.Logf("it has %s", v.Shown)
		}
	}
	for _, o := range r.Scenarios[0].Outcomes {
		for _, found := range o.Runs[0].Found {
			t.Errorf("%s: %s at %v: %s", o.Strategy, found.Invariant, found.At, found.Detail)
		}
	}
}
