package cli_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/ration-dev/ration/internal/cli"
	"github.com/ration-dev/ration/lease"
)

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		err  error
		code int
	}{
		{nil, cli.OK},
		{cli.Failf("differs"), cli.CheckFailed},
		{cli.Fail(nil), cli.OK},
		{cli.Unreachable(nil), cli.OK},
		{errors.New("unknown flag"), cli.BadUsage},
		{cli.Usagef("x"), cli.BadUsage},
		{lease.Errorf(lease.Invalid, "limit.rate", "x"), cli.BadUsage},
		{lease.Errorf(lease.UnknownBudget, "", "x"), cli.CheckFailed},
		{fmt.Errorf("w: %w", lease.Errorf(lease.Unavailable, "", "x")), cli.Unavailable},
		{cli.Unreachable(errors.New("x")), cli.Unavailable},
		{fmt.Errorf("w: %w", context.DeadlineExceeded), cli.Unavailable},
	} {
		if got := cli.Code(c.err); got != c.code {
			t.Errorf("%v: exit %d, want %d", c.err, got, c.code)
		}
	}
}

// A command that only has commands fails without one, and a required flag that is
// empty is as good as none.
func TestWhatIsMissingIsSaid(t *testing.T) {
	var out bytes.Buffer
	cmd := &cobra.Command{Use: "x", RunE: cli.Group, SilenceErrors: true, SilenceUsage: true}
	cmd.AddCommand(&cobra.Command{Use: "up", Run: func(*cobra.Command, []string) {}})
	cmd.SetOut(&out)
	cmd.SetArgs([]string{})
	if err := cmd.Execute(); cli.Code(err) != cli.BadUsage || !strings.Contains(err.Error(), "x needs one of its commands: ") || !strings.Contains(out.String(), "up") {
		t.Errorf("%v, %s", err, out.String())
	}
	cmd.Flags().String("url", "", "")
	if err := cmd.ParseFlags([]string{"--url", ""}); err != nil || cli.Code(cli.Required(cmd, "url")) != cli.BadUsage {
		t.Errorf("an empty flag: %v", err)
	}
}

// A name cannot move the terminal's cursor, or hide.
func TestPrintable(t *testing.T) {
	for s, want := range map[string]string{"acme/ü": "acme/ü", "a\x1b[2J": `"a\x1b[2J"`, "a\u0085": `"a\u0085"`, "a\nb": `"a\nb"`} {
		if got := cli.Printable(s); got != want {
			t.Errorf("%q is shown as %s, want %s", s, got, want)
		}
	}
}

func TestTable(t *testing.T) {
	var out bytes.Buffer
	if err := cli.WriteTable(&out, []string{"Name", "N"}, [][]any{{"a", 5}, {"bcd\x07", 100}}); err != nil {
		t.Fatal(err)
	}
	want := "NAME       N\na          5\n\"bcd\\a\"  100\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestNoColourOffATerminal(t *testing.T) {
	file, err := os.CreateTemp(t.TempDir(), "out")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	none := func(string) (string, bool) { return "", false }
	if cli.Colour(file, none) || cli.Colour(&bytes.Buffer{}, none) {
		t.Error("a file is coloured")
	}
}
