package main

import (
	"context"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/ration-dev/ration/internal/testpg"
)

const twoBudgets = `budgets:
  - name: acme/search
    match: {tenant: acme, endpoint: search}
    limit: {rate: 1000/s, burst: 2000}
    over_admission: {percent: 5, within: 2s}
  - name: acme/export
    limit: {quota: 1000, per: month}
`

func TestMigrate(t *testing.T) {
	db := []string{"--database-url", testpg.Empty(t)}
	expect(t, 1, []string{"missing"}, append(db, "migrate", "status")...)
	expect(t, 0, []string{"applied 0"}, append(db, "migrate", "up")...)
	expect(t, 0, []string{"up to date"}, append(db, "migrate", "up")...)
	expect(t, 0, []string{`"applied": true`}, append(db, "migrate", "status", "-o", "json")...)
	expect(t, 0, []string{"undid"}, append(db, "migrate", "down", "--yes")...)
	expect(t, 1, []string{"missing"}, append(db, "migrate", "status")...)
	expect(t, 3, []string{"run allocator migrate up"}, append(db, "serve", "--insecure", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0")...)
}

// From files to the ledger and back: shown first, all or none, and the same
// files twice change nothing.
func TestBudgets(t *testing.T) {
	db := []string{"--database-url", testpg.Database(t)}
	cmd := func(line string, files ...string) []string {
		args := append(strings.Fields(line), db...)
		for _, f := range files {
			args = append(args, "-f", f)
		}
		return args
	}
	path := write(t, twoBudgets)

	expect(t, 0, []string{"would apply 2 new", "+ acme/search", "limit.rate: 1000/s"}, cmd("budgets apply --dry-run", path)...)
	expect(t, 1, []string{"2 of 2 budgets differ"}, cmd("budgets diff", path)...)
	expect(t, 0, []string{"applied 2 new, 0 changed"}, cmd("budgets apply", path)...)
	expect(t, 0, []string{"0 new, 0 changed, 0 deleted, 2 unchanged"}, cmd("budgets diff", path)...)

	before := expect(t, 0, []string{"acme/export", "1000 per month UTC"}, cmd("budgets get")...)
	expect(t, 0, []string{"applied 0 new, 0 changed, 0 deleted, 2 unchanged"}, cmd("budgets apply", path)...)
	if after := expect(t, 0, nil, cmd("budgets get")...); after != before {
		t.Errorf("applying the same again changed\n%s\nto\n%s", before, after)
	}

	edited := write(t, strings.Replace(twoBudgets, "burst: 2000", "burst: 1500", 1))
	expect(t, 1, []string{"~ acme/search", "limit.burst: 2000 -> 1500", "1 of 2 budgets differ"}, cmd("budgets diff", edited)...)
	out := expect(t, 1, nil, cmd("budgets diff -o json", edited)...)
	var changes []struct{ Budget, Change string }
	if err := json.Unmarshal([]byte(out), &changes); err != nil || len(changes) != 2 || changes[0].Change != "change" {
		t.Errorf("%v: %s", err, out)
	}
	expect(t, 0, []string{"applied 0 new, 1 changed"}, cmd("budgets apply", edited)...)

	// What get writes as YAML is a budget file that changes nothing.
	round := write(t, expect(t, 0, nil, cmd("budgets get -o yaml")...))
	expect(t, 0, []string{"2 unchanged"}, cmd("budgets diff", round)...)
	expect(t, 1, []string{`no budget "nope" is in force`}, cmd("budgets get acme/search nope")...)

	// One bad budget keeps the good one out too.
	bad := write(t, "budgets:\n  - {name: good, limit: {rate: 1/s, burst: 1}}\n  - {name: bad, limit: {rate: 1/s, burst: -1}}\n")
	expect(t, 2, []string{bad + ":3:43"}, cmd("budgets apply", bad)...)
	expect(t, 1, nil, cmd("budgets get good")...)

	expect(t, 1, []string{`"nope"`}, cmd("budgets delete acme/search nope --yes")...)
	expect(t, 0, nil, cmd("budgets get acme/search")...) // none was deleted
	expect(t, 0, []string{"- acme/search", "deleted 1 budgets, 0 were deleted before"}, cmd("budgets delete acme/search --yes")...)
	expect(t, 0, []string{"deleted 1 budgets, 1 were deleted before"}, cmd("budgets delete --yes", path)...)
	if out := expect(t, 0, nil, cmd("budgets get")...); strings.Contains(out, "acme/") {
		t.Errorf("deleted budgets are in force:\n%s", out)
	}
	expect(t, 0, []string{"applied 2 new"}, cmd("budgets apply", path)...)
	expect(t, 0, []string{"2 budgets, ", "conservation holds"}, cmd("audit")...)
}

func TestBudgetsFromStandardInput(t *testing.T) {
	f, err := os.Open(write(t, twoBudgets))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	old := os.Stdin
	os.Stdin = f
	defer func() { os.Stdin = old }()
	expect(t, 0, []string{"applied 2 new"}, "budgets", "apply", "-f", "-", "--database-url", testpg.Database(t))
}

// A single token too many in a stored row is found, and its row is named.
func TestAuditNamesTheRow(t *testing.T) {
	url := testpg.Database(t)
	expect(t, 0, nil, "budgets", "apply", "-f", write(t, twoBudgets), "--database-url", url)
	tamper(t, url, "available")
	out := expect(t, 1, []string{"conservation does not hold in 1 rows"}, "audit", "--database-url", url)
	if !regexp.MustCompile(`(?m)^acme/search +pool `).MatchString(out) {
		t.Errorf("the row is not named:\n%s", out)
	}
	out = expect(t, 1, nil, "audit", "--database-url", url, "-o", "json")
	var got audited
	if err := json.Unmarshal([]byte(out), &got); err != nil || got.Holds || len(got.Findings) != 1 || got.Budgets != 2 {
		t.Errorf("%v: %+v", err, got)
	}
}

// tamper adds one to a column of the bucket's pool.
func tamper(t *testing.T, url, column string) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	tag, err := conn.Exec(ctx, "UPDATE pools SET "+column+" = "+column+" + 1 WHERE burst = 2000")
	if err != nil || tag.RowsAffected() != 1 {
		t.Fatalf("%d rows: %v", tag.RowsAffected(), err)
	}
}
