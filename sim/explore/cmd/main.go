// Command cmd explores the protocol's small models for longer than tests do.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/ration-dev/ration/sim/explore"
)

func main() {
	took := flag.Duration("time", 10*time.Minute, "how long to explore in all; each configuration gets an equal part of what is left")
	states := flag.Int("states", 0, "how many states of each configuration to visit at most; 0 for no bound")
	only := flag.String("run", "", "explore only configurations whose name contains this")
	small := flag.Bool("small", false, "explore the configurations of the tests, not the larger ones")
	workers := flag.Int("workers", runtime.GOMAXPROCS(0), "goroutines")
	flag.Parse()
	configs := explore.Large()
	if *small {
		configs = explore.Small()
	}
	if !run(configs, *only, *took, explore.Options{States: *states, Workers: *workers}) {
		os.Exit(1)
	}
}

// run explores one configuration after the other and reports whether every
// invariant held.
func run(configs []explore.Config, only string, took time.Duration, opt explore.Options) bool {
	var chosen []explore.Config
	for _, c := range configs {
		if strings.Contains(c.Name, only) {
			chosen = append(chosen, c)
		}
	}
	end, held, states := time.Now().Add(took), true, 0
	for i, c := range chosen {
		opt.Time = max(time.Second, time.Until(end)/time.Duration(len(chosen)-i))
		r := explore.Run(c, opt)
		fmt.Println(r)
		held = held && r.Broken == nil
		states += r.States
	}
	fmt.Printf("%d states in all\n", states)
	return held
}
