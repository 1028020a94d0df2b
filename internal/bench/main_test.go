package bench

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/ration-dev/ration/internal/cli"
)

var markdown = flag.String("md", "", "write the table into this Markdown `file`, between its marks")

// Row is one line of the table. Its texts are written as they are; "" where
// there is nothing to say.
type Row struct{ Item, Ours, Yardstick, Ratio, Goal string }

// measured is what this process has measured; benchmarks run one at a time.
var measured rows

// report adds a row to the table. One that was reported under the same Item
// before is replaced: a benchmark may run more than once.
func report(r Row) { measured.add(r) }

func TestMain(m *testing.M) {
	cli.TuneCollector() // as the servers' commands do
	if role := os.Getenv(roleEnv); role != "" {
		play(role, os.Stdin, os.Stdout)
		os.Exit(0)
	}
	code := m.Run()
	if len(measured) > 0 {
		fmt.Print("\n", machine(), "\n\n", measured.text())
		if err := measured.write(*markdown); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}
