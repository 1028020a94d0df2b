package proof_test

import (
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/ration-dev/ration/sim"
)

// coverage sums the counters of many runs. Safe for concurrent use.
type coverage struct {
	mutex sync.Mutex
	sum   sim.Coverage
	// runs counts those in which each path was reached.
	runs map[string]int
}

func (c *coverage) add(r *sim.Result) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.runs == nil {
		c.runs = map[string]int{}
	}
	sum, one := reflect.ValueOf(&c.sum).Elem(), reflect.ValueOf(r.Coverage)
	for i := range sum.NumField() {
		n := one.Field(i).Int()
		sum.Field(i).SetInt(sum.Field(i).Int() + n)
		if n > 0 {
			c.runs[sum.Type().Field(i).Name]++
		}
	}
}

// missing names the paths that no run reached.
func (c *coverage) missing() (all []string) {
	sum := reflect.ValueOf(c.sum)
	for i := range sum.NumField() {
		if sum.Field(i).Int() == 0 {
			all = append(all, fmt.Sprintf("no run reached %s", sum.Type().Field(i).Name))
		}
	}
	return all
}

// String has each path with how often it was reached and in how many runs.
func (c *coverage) String() string {
	var b strings.Builder
	sum := reflect.ValueOf(c.sum)
	for i := range sum.NumField() {
		name := sum.Type().Field(i).Name
		fmt.Fprintf(&b, "%s %d in %d runs, ", name, sum.Field(i).Int(), c.runs[name])
	}
	return strings.TrimSuffix(b.String(), ", ")
}
