package redis

import (
	"context"
	"testing"
)

// BenchmarkTake is one decision at a time, and by as many callers as there
// are connections.
func BenchmarkTake(b *testing.B) {
	s := shared(b)
	grant(b, s, "acme/search", 1<<50)
	req := takes(1, "acme/search")
	b.Run("alone", func(b *testing.B) {
		for b.Loop() {
			if _, err := s.Take(context.Background(), req); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("together", func(b *testing.B) {
		b.SetParallelism(16)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := s.Take(context.Background(), req); err != nil {
					b.Error(err)
				}
			}
		})
	})
}
