package file_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
	"github.com/ration-dev/ration/policy/file"
)

const example = `budgets:
  - name: acme/search
    match: {tenant: acme, endpoint: search}
    limit: {rate: 1000/s, burst: 2000}        # or {quota: 1000000, per: month, zone: UTC}
    strategy: dynamic                         # static | independent | dynamic
    over_admission: {percent: 5, within: 2s}  # or {tokens: 0}, the default
    regions: {us: {weight: 60, floor: 100/s}, eu: {weight: 40, reserve: {rate: 20/s, burst: 20}}}
    lease: {ttl: 10s, share_ttl: 1h}          # defaults are derived
    on_failure: {mode: allow_local, rate: 20/s, burst: 20}   # or {mode: deny}
    on_store_loss: regrant                    # or wait
    wait: 200ms
`

func parse(texts ...string) ([]policy.Budget, error) {
	var sources []file.Source
	for i, s := range texts {
		sources = append(sources, file.Source{Name: string(rune('a'+i)) + ".yaml", Data: []byte(s)})
	}
	return file.Parse(policy.DefaultDeployment(), sources...)
}

func TestParseTheExample(t *testing.T) {
	got, err := parse(example)
	if err != nil || len(got) != 1 {
		t.Fatalf("%d budgets, %v", len(got), err)
	}
	second := func(n lease.Tokens) lease.Rate { return lease.Rate{Tokens: n, Per: time.Second} }
	want := policy.Budget{
		Name: "acme/search", Match: map[string]string{"tenant": "acme", "endpoint": "search"},
		Contract: policy.Contract{Rate: second(1000), Burst: 2000}, Strategy: policy.Dynamic,
		Float: 77, OverAdmission: policy.OverAdmission{MilliPercent: 5000, Within: 2 * time.Second},
		Regions: []policy.Region{
			{Name: "eu", Weight: 40, Reserve: policy.Reserve{Rate: second(20), Burst: 20}},
			{Name: "us", Weight: 60, Floor: second(100)},
		},
		TTL: 10 * time.Second, ShareTTL: time.Hour, Wait: 200 * time.Millisecond,
		OnFailure: policy.Failure{Mode: policy.AllowLocal, Rate: second(20), Burst: 20}, OnStoreLoss: policy.Regrant,
	}
	if !got[0].Same(want) {
		t.Errorf("got  %+v\nwant %+v", got[0], want)
	}
}

func TestParseReportsEveryFaultWithItsPlace(t *testing.T) {
	_, err := parse(`budgets:
  - name: a
    limit: {rate: 10/s, brust: 5}
  - name: b
    limit: {rate: 10, burst: 5}
    wait: 1s
  - limit: {quota: 5}
    strategy: dynamic
  - name: c
    limit: {rate: 10/s, burst: 5}
    wait: 1s
    regions: {us: {weight: 1}, eu: }
`)
	wantLines(t, err,
		`a.yaml:3:25: limit has no field "brust", did you mean "burst"?`,
		`a.yaml:5:19: limit.rate "10" is not a rate: write tokens per period, as in 1000/s or 5/min`,
		`a.yaml:7:5: name is missing`,
		`a.yaml:7:5: limit.per is missing with a quota`,
		`a.yaml:11:11: wait is 1s, must be 0s to 300ms`,
		`a.yaml:12:32: regions.eu.weight is missing: give every region a weight, or none for equal parts`,
	)
}

func TestParseRefuses(t *testing.T) {
	for note, c := range map[string]struct{ text, want string }{
		"empty file":         {"", "a.yaml: is empty"},
		"no list":            {"{}", "a.yaml:1:1: has no budgets list"},
		"unknown top field":  {"budget: []", `did you mean "budgets"?`},
		"not a list":         {"budgets: {a: 1}", "a.yaml:1:10: budgets must be a list"},
		"not a mapping":      {"budgets: [5]", `a.yaml:1:11: budgets[0] must be a mapping of fields, not "5"`},
		"bad syntax":         {"budgets:\n  - name: [a\n", "a.yaml:3:"},
		"key twice":          {"budgets: [{name: a, name: b, limit: {rate: 1/s, burst: 1}}]", "name is given twice"},
		"name twice":         {"budgets:\n - {name: a, limit: {rate: 1/s, burst: 1}}\n - {name: a, limit: {rate: 1/s, burst: 1}}", `a.yaml:3:11: name "a" was given before, at a.yaml:2:11`},
		"both contracts":     {"budgets: [{name: a, limit: {rate: 1/s, burst: 1, quota: 5, per: day}}]", "not both"},
		"empty limit":        {"budgets: [{name: a, limit: {}}]", "limit.rate is missing"},
		"no value":           {"budgets: [{name: a, limit: }]", "limit has no value"},
		"list for a value":   {"budgets: [{name: [a], limit: {rate: 1/s, burst: 1}}]", "must be a single value, not a list"},
		"zero ttl":           {"budgets: [{name: a, limit: {rate: 1/s, burst: 1}, lease: {ttl: 0s}}]", "lease.ttl must be above 0"},
		"duration, no unit":  {"budgets: [{name: a, limit: {rate: 1/s, burst: 1}, wait: 10}]", "is not a duration"},
		"weight 0":           {"budgets: [{name: a, limit: {rate: 1/s, burst: 1}, regions: {us: {weight: 0}}}]", "is not a weight"},
		"negative burst":     {"budgets: [{name: a, limit: {rate: 1/s, burst: -1}}]", "is not a whole number"},
		"infinite burst":     {"budgets: [{name: a, limit: {rate: 1/s, burst: .inf}}]", "is not a whole number"},
		"window, no percent": {"budgets: [{name: a, limit: {rate: 1/s, burst: 1}, over_admission: {within: 2s}}]", "over_admission.percent is missing"},
		"merge of itself":    {"budgets: [&a {<<: *a, name: a}]", "a.yaml:"},
		"strange region":     {`budgets: [{name: a, limit: {rate: 1/s, burst: 1}, regions: {"a.b c": {wight: 1}}}]`, `regions["a.b c"] has no field "wight"`},
		"zone":               {"budgets: [{name: a, limit: {quota: 1, per: day, zone: Nowhere}}]", "a.yaml:1:55: limit.zone"},
	} {
		got, err := parse(c.text)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: want %q, got %v", note, c.want, err)
		}
		if got != nil {
			t.Errorf("%s: budgets beside an error: %v", note, got)
		}
		if err != nil && lease.CodeOf(err) != lease.Invalid {
			t.Errorf("%s: code %v", note, lease.CodeOf(err))
		}
	}
}

func TestParseAcceptsDocumentsAnchorsAndMerges(t *testing.T) {
	got, err := parse(`budgets:
  - &base
    name: a
    limit: &limit {rate: 10/s, burst: 5}
    wait: 100ms
  - {name: b, limit: *limit}
  - {<<: *base, name: c}
---
budgets:
  - {name: 42, match: {port: 80, on: yes}, limit: {rate: 0/s, burst: 0}}
---
budgets: []
`)
	if err != nil || len(got) != 4 {
		t.Fatalf("%d budgets, %v", len(got), err)
	}
	if got[1].Contract != got[0].Contract || got[2].Wait != 100*time.Millisecond || got[2].Name != "c" {
		t.Errorf("alias or merge: %+v", got)
	}
	if got[3].Name != "42" || got[3].Match["port"] != "80" || got[3].Match["on"] != "yes" {
		t.Errorf("values are taken as written: %+v", got[3])
	}
}

func TestParseRefusesANameInTwoFiles(t *testing.T) {
	one := "budgets: [{name: a, limit: {rate: 1/s, burst: 1}}]"
	_, err := parse(one, "\n"+one)
	wantLines(t, err, `b.yaml:2:18: name "a" was given before, at a.yaml:1:18`)
}

func TestParseCountsWhatItDoesNotName(t *testing.T) {
	_, err := parse("budgets:\n" + strings.Repeat(" - {}\n", 30))
	if err == nil || strings.Count(err.Error(), "\n") != 20 || !strings.HasSuffix(err.Error(), "and 40 more") {
		t.Errorf("got %v", err)
	}
}

func TestLoadReadsDirectories(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "odd [name]*")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := file.Load(policy.DefaultDeployment(), dir); err == nil {
		t.Error("an empty directory: want an error")
	}
	for name, budget := range map[string]string{"2.yaml": "b", "1.yml": "a", "note.txt": ":"} {
		text := "budgets: [{name: " + budget + ", limit: {rate: 1/s, burst: 1}}]"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := file.Load(policy.DefaultDeployment(), dir)
	if err != nil || len(got) != 2 || got[0].Name != "a" || got[1].Name != "b" {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := file.Load(policy.DefaultDeployment(), filepath.Join(dir, "absent.yaml")); !os.IsNotExist(err) {
		t.Errorf("absent file: %v", err)
	}
}

func TestLoadRefusesLargeFiles(t *testing.T) {
	name := filepath.Join(t.TempDir(), "large.yaml")
	if err := os.WriteFile(name, bytes.Repeat([]byte("#"), file.MaxSize+1), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := file.Load(policy.DefaultDeployment(), name); err == nil || !strings.Contains(err.Error(), "larger") {
		t.Errorf("got %v", err)
	}
}

// Every name of 1 to 256 bytes is written and read back.
func TestWriteReadsBackStrangeNames(t *testing.T) {
	names := []string{"a_b:c", "{tag}", " ", "\t\n", "~", "null", "yes", "1e3", "<<", "budgets", "müll/🧨", "\u0085\u2028\ufeff", "'\"\\", "- a", "\x01\x7f", strings.Repeat("ß", 128)}
	for _, name := range names {
		b := policy.Budget{
			Name: name, Match: map[string]string{name: name},
			Contract: policy.Contract{Rate: lease.Rate{Tokens: 3, Per: time.Second}, Burst: 3},
			Regions:  []policy.Region{{Name: name, Weight: 2}},
		}
		b, err := b.Normalize(policy.DefaultDeployment())
		if err != nil {
			t.Fatalf("%q: %v", name, err)
		}
		readBack(t, b)
	}
}

func TestWriteReadsBackEveryField(t *testing.T) {
	budgets, err := parse(example + `  - {name: q, limit: {quota: 0, per: month, zone: Asia/Tokyo}}
  - {name: z, limit: {rate: 0/s, burst: 0}, over_admission: {tokens: 3}, on_store_loss: wait}
  - {name: s, strategy: static, limit: {rate: 5/min, burst: 9}, regions: {us: , eu: {}}, over_admission: {percent: 33.125, within: 5m}}
`)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range budgets {
		readBack(t, b)
	}
}

func readBack(t *testing.T, b policy.Budget) {
	t.Helper()
	var out bytes.Buffer
	if err := file.Write(&out, []policy.Budget{b}); err != nil {
		t.Fatalf("%q: %v", b.Name, err)
	}
	got, err := parse(out.String())
	if err != nil || len(got) != 1 || !got[0].Same(b) {
		t.Errorf("%q: %v\n%s\ngot  %+v\nwant %+v", b.Name, err, out.String(), got, b)
	}
}

func wantLines(t *testing.T, err error, want ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("want an error")
	}
	got := strings.Split(err.Error(), "\n")
	for i := range max(len(got), len(want)) {
		g, w := "", ""
		if i < len(got) {
			g = got[i]
		}
		if i < len(want) {
			w = want[i]
		}
		if g != w {
			t.Errorf("line %d\ngot  %s\nwant %s", i+1, g, w)
		}
	}
}

// Whatever is read either is refused with a place or is written and read back
// the same.
func FuzzParse(f *testing.F) {
	f.Add([]byte(example))
	f.Add([]byte("budgets: [&a {<<: *a, name: a}]"))
	f.Add([]byte("budgets: [{name: q, limit: {quota: 5, per: week, zone: Asia/Kathmandu}}]\n---\n"))
	f.Add([]byte("? [a]\n: b"))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := file.Parse(policy.DefaultDeployment(), file.Source{Name: "f", Data: data})
		if err != nil {
			if !strings.HasPrefix(err.Error(), "f:") || got != nil {
				t.Errorf("%d budgets beside %v", len(got), err)
			}
			return
		}
		for _, b := range got {
			readBack(t, b)
		}
	})
}
