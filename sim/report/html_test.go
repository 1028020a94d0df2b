package report_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/ration-dev/ration/sim"
	"github.com/ration-dev/ration/sim/batch"
	"github.com/ration-dev/ration/sim/report"
	"github.com/ration-dev/ration/sim/scenario"
)

const small = `version: 1
title: "</script><b>bold</b>"
question: What <i>of</i> it?
duration: 20s
points: 20
topology:
  regions: {us: {rtt: 20ms}, "e<u": {rtt: 80ms}}
budgets:
  - {name: "</script>a", limit: {rate: 100/s, burst: 100}}
workloads:
  - {name: us, region: us, budget: "</script>a", rate: 90/s}
  - {name: eu, region: "e<u", budget: "</script>a", rate: 40/s}
faults:
  - {at: 5s, for: 5s, kind: partition, region: us}
expect:
  - {measure: over_admission, at_most: 0}
`

func html(t *testing.T, points ...[]scenario.Setting) string {
	t.Helper()
	var jobs []batch.Job
	for _, p := range points {
		s, err := scenario.Parse("a.yaml", []byte(small), p...)
		if err != nil {
			t.Fatal(err)
		}
		jobs = append(jobs, batch.Job{Scenario: s, Strategies: []sim.Strategy{sim.Static, sim.Dynamic}, Seeds: []uint64{1, 2}})
	}
	r, err := batch.Run(t.Context(), jobs, batch.Options{Parallel: 2, Series: true})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := report.HTML(&out, r); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

var element = regexp.MustCompile(`(?s)<(script|style)>(.*?)</(?:script|style)>`)

// The page runs exactly what its policy names by hash: both scripts, both
// style sheets, and nothing that a name or title brings along. Seen to fail: a
// template that indents a script by a space.
func TestPolicyNamesWhatIsInThePage(t *testing.T) {
	page := html(t, nil)
	found := element.FindAllStringSubmatch(page, -1)
	if len(found) != 4 {
		t.Fatalf("%d scripts and styles", len(found))
	}
	// html/template writes the quotes of an attribute as entities.
	policy := strings.ReplaceAll(strings.ReplaceAll(page[:strings.Index(page, "<title>")], "&#39;", "'"), "&#43;", "+")
	for _, f := range found {
		sum := sha256.Sum256([]byte(f[2]))
		if hash := base64.StdEncoding.EncodeToString(sum[:]); !strings.Contains(policy, "'sha256-"+hash+"'") {
			t.Errorf("%s of %d bytes is not in the policy", f[1], len(f[2]))
		}
	}
	if strings.Count(page, "<script") != 3 || strings.Contains(page, "<b>bold") || strings.Contains(page, "<i>of") || strings.Contains(page, "</script>a") {
		t.Error("a name got out of its place")
	}
	for _, outside := range []string{"http://", "https://", "//cdn"} {
		for _, attribute := range []string{`src="`, `href="`, `url(`, `@import "`} {
			if strings.Contains(page, attribute+outside) {
				t.Errorf("the page loads something with %s%s", attribute, outside)
			}
		}
	}
}

// The charts' numbers are those of the runs.
func TestDataIsWhatWasSimulated(t *testing.T) {
	page := html(t, nil)
	from := strings.Index(page, `id="data">`) + len(`id="data">`)
	text := page[from:]
	text = text[:strings.Index(text, "</script>")]
	var data struct {
		Scenarios []struct {
			Length  float64
			Marks   []struct{ At, Until float64 }
			Budgets []struct {
				Views []struct {
					Name           string
					Offered, Ideal []int64
					Regions        []struct{ Offered, Ideal []int64 }
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(text), &data); err != nil {
		t.Fatal(err)
	}
	s := data.Scenarios[0]
	if s.Length != 20 || len(s.Marks) != 1 || s.Marks[0].At != 5 || s.Marks[0].Until != 10 || len(s.Budgets[0].Views) != 2 {
		t.Fatalf("%+v", s)
	}
	for _, v := range s.Budgets[0].Views {
		for i := range v.Offered {
			if v.Offered[i] != v.Regions[0].Offered[i]+v.Regions[1].Offered[i] || v.Ideal[i] != v.Regions[0].Ideal[i]+v.Regions[1].Ideal[i] {
				t.Errorf("%s: the regions of point %d do not make up the whole", v.Name, i)
			}
		}
	}
}

// Every part has words and tables beside its charts.
func TestTextAlternatives(t *testing.T) {
	page := html(t, nil)
	for _, want := range []string{
		"&lt;/script&gt;a as a table", "<caption>Tokens a second with strategy dynamic", "Over-admission and its bound",
		"partition", "1 threshold kept", `lang="en"`, `scope="col"`, `aria-label="Key"`, "MIT License",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is not in the page", want)
		}
	}
}

func TestSweep(t *testing.T) {
	point := func(v string) []scenario.Setting { return []scenario.Setting{{Field: "limit.burst", Value: v}} }
	page := html(t, point("20"), point("100"))
	if strings.Count(page, "<section") != 1 || !strings.Contains(page, "★ not beaten") || !strings.Contains(page, `data-sweep="0"`) {
		t.Error("the sweep is not one section with its points")
	}
}
