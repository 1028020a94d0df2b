package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ration-dev/ration/sim/scenario"
)

const smallScenario = `version: 1
title: Small
duration: 20s
topology:
  regions: {us: {rtt: 20ms}, eu: {rtt: 80ms}}
budgets:
  - {name: a, limit: {rate: 100/s, burst: 100}}
workloads:
  - {name: us, region: us, budget: a, rate: 90/s}
  - {name: eu, region: eu, budget: a, rate: 40/s}
expect:
  - {measure: over_admission, at_most: 0}
  - {measure: denied, strategy: static, at_most: 1%}
`

func TestSimulate(t *testing.T) {
	file := write(t, smallScenario)
	expect(t, 0, []string{"Small", "utilisation", "kept    over-admission at most 0: 0 with seed 1", "us"}, "simulate", file)
	expect(t, 1, []string{"FAILED  denied at most 1 %", "(static, " + file + ":13)", "1 threshold not kept", "WRITEBACK"},
		"simulate", file, "--strategy", "all", "--runs", "2")
	expect(t, 2, []string{`there is no strategy "dinamic", did you mean "dynamic"?`}, "simulate", file, "--strategy", "dinamic")
	expect(t, 2, []string{"--sweep lease.ttl=0s: lease.ttl must be above 0"}, "simulate", file, "--sweep", "lease.ttl=5s,0s")
	expect(t, 2, []string{`--sweep "lease.ttl": write FIELD=VALUE`}, "simulate", file, "--sweep", "lease.ttl")
	expect(t, 2, []string{"--runs must be above 0"}, "simulate", file, "--runs", "0")
	expect(t, 2, []string{"swept twice"}, "simulate", file, "--sweep", "limit.burst=5", "--sweep", "limit.burst=6")
	if out := expect(t, 2, []string{"is a directory"}, "simulate", file, "--html", t.TempDir()); out != "" {
		t.Errorf("ran before it refused:\n%s", out)
	}
	// More seeds than fit into a slice: they must be refused before they are listed.
	expect(t, 2, []string{"more than 100000 runs"}, "simulate", file, "--runs", "9223372036854775807")
	expect(t, 2, []string{"not one of table, json, csv"}, "simulate", file, "-o", "yaml")
	expect(t, 2, []string{"absent.yaml"}, "simulate", "absent.yaml")
	expect(t, 2, []string{":1:1: has no field"}, "simulate", write(t, "vesion: 1\n"))
	expect(t, 2, nil, "simulate")
}

// Only the first run has series, and those only for the report: JSON has the
// results, whatever --parallel is.
func TestSimulateJSON(t *testing.T) {
	file := write(t, smallScenario)
	one := expect(t, 0, nil, "simulate", file, "--seed", "9", "--runs", "2", "-o", "json", "--parallel", "1")
	two := expect(t, 0, nil, "simulate", file, "--seed", "9", "--runs", "2", "-o", "json", "--parallel", "2")
	if one != two {
		t.Error("differ")
	}
	var out struct {
		Finished  int `json:"finished_runs"`
		Scenarios []struct {
			Outcomes []struct {
				Runs []struct {
					Seed uint64 `json:"seed"`
				} `json:"runs"`
			} `json:"outcomes"`
		} `json:"scenarios"`
	}
	if err := json.Unmarshal([]byte(one), &out); err != nil {
		t.Fatal(err)
	}
	if out.Finished != 2 || out.Scenarios[0].Outcomes[0].Runs[1].Seed != 10 || strings.Contains(one, `"series"`) {
		t.Errorf("%+v", out)
	}
}

func TestSimulateCSV(t *testing.T) {
	text := expect(t, 0, nil, "simulate", write(t, smallScenario), "--sweep", "limit.burst=50,100", "--sweep", "topology.commit=1ms", "-o", "csv")
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(rows) != 5 || rows[0][1] != "limit.burst" || rows[3][1] != "100" || rows[4][5] != "a" {
		t.Errorf("%v\n%s", err, text)
	}
	if len(rows[0]) != 6+len(scenario.Measures()) {
		t.Errorf("%d columns", len(rows[0]))
	}
}

func TestSimulateHTML(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.html")
	expect(t, 0, nil, "simulate", write(t, smallScenario), "--html", path)
	page, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(page), "Simulation: Small") {
		t.Errorf("%v, %d bytes", err, len(page))
	}
	expect(t, 2, []string{"--html"}, "simulate", write(t, smallScenario), "--html", filepath.Join(t.TempDir(), "no", "out.html"))
}

// Interrupted, it prints what was finished and says how far it came.
func TestSimulateInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var c call
	if code := c.run(ctx, "simulate", write(t, smallScenario)); code != 1 || !strings.Contains(c.err.String(), "interrupted: 0 of 1 runs were finished") {
		t.Errorf("exit %d: %s", code, c.err.String())
	}
}
