package postgres_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/ration-dev/ration/allocation"
	"github.com/ration-dev/ration/allocation/postgres"
	"github.com/ration-dev/ration/internal/testpg"
	"github.com/ration-dev/ration/lease"
)

// BenchmarkUpdate changes a pool and two leases of every budget of a batch.
// The shared test server does not wait for its disk.
func BenchmarkUpdate(b *testing.B) {
	for _, n := range []int{1, 10, 100, 1000} {
		b.Run(fmt.Sprintf("budgets=%d", n), func(b *testing.B) {
			s := open(b, testpg.Database(b), postgres.Options{})
			var names []string
			var states []*allocation.State
			for i := range n {
				st := counted(fmt.Sprintf("acme/%d", i))
				for _, region := range []string{"eu", "us"} {
					st.Leases = append(st.Leases, allocation.Lease{Region: region, Kind: lease.Lump, Incarnation: "i"})
				}
				names, states = append(names, st.Budget.Name), append(states, st)
			}
			put(b, s, states...)
			for b.Loop() {
				err := s.Update(context.Background(), names, func(_ allocation.Now, states []*allocation.State) error {
					for _, st := range states {
						st.Pools[0].Available++
						st.Leases[0].Seq++
						st.Leases[1].Seq++
					}
					return nil
				})
				if err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*n), "µs/budget")
		})
	}
}
