package allocation

import (
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"
	"pgregory.net/rapid"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// vectors are the worked examples that a pool must give exactly.
type vectors struct {
	TokenBucket []struct {
		Note     string
		Capacity lease.Tokens
		Rate     lease.Tokens `yaml:"rate_per_s"`
		Start    string
		Steps    []struct {
			At      int64
			Cost, N lease.Tokens
			Allowed any
		}
		Arrivals []int64
		Allowed  []bool
	} `yaml:"token_bucket"`
}

// A pool whose tokens are all taken as lumps and used at once decides like the
// token bucket of the worked examples.
func TestPoolAsTokenBucket(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "testdata", "vectors.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var v vectors
	if err := yaml.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	if len(v.TokenBucket) == 0 {
		t.Fatal("no examples")
	}
	for _, c := range v.TokenBucket {
		t.Run(c.Note, func(t *testing.T) {
			b := newTaker(t, c.Rate, c.Capacity)
			if c.Start == "0 tokens" {
				b.take(c.Capacity, 0)
			}
			for i, at := range c.Arrivals {
				if got := b.take(1, at) == 1; got != c.Allowed[i] {
					t.Errorf("at %d ms: allowed is %v", at, got)
				}
			}
			for _, s := range c.Steps {
				want := lease.Tokens(0)
				switch allowed := s.Allowed.(type) {
				case bool:
					if allowed {
						want = s.Cost
					}
				case int:
					want = lease.Tokens(allowed)
				}
				got := b.take(max(s.Cost, s.N), s.At)
				if got < s.Cost {
					got = 0 // a single request passes whole or not at all
				}
				if got != want {
					t.Errorf("at %d ms: %d of %d pass, want %d", s.At, got, max(s.Cost, s.N), want)
				}
			}
		})
	}
}

// taker takes tokens out of a pool as debt would: they are gone at once.
type taker struct {
	p     Pool
	start lease.Time
}

func newTaker(t *testing.T, rate, burst lease.Tokens) *taker {
	t.Helper()
	s := NewState(Now{Governed: 1e15, Raw: 1e15}, bucket(rate, burst, policy.Dynamic))
	return &taker{p: s.Pools[0], start: 1e15}
}

// take takes up to n tokens at a time in milliseconds.
func (b *taker) take(n lease.Tokens, atMs int64) lease.Tokens {
	b.p.advance(b.start.Add(time.Duration(atMs) * time.Millisecond))
	n = max(0, min(n, b.p.Available))
	b.p.owe(n, lease.MaxTokens)
	return n
}

// advance is exact: over any partition of time the pool mints what the whole
// time makes, rounded down, whatever the sizes; an earlier now changes
// nothing.
func TestAdvanceIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := lease.Rate{
			Tokens: lease.Tokens(rapid.Int64Range(0, int64(lease.MaxTokens)).Draw(t, "tokens")),
			Per:    time.Duration(rapid.Int64Range(1, int64(lease.MaxPeriod/time.Microsecond)).Draw(t, "per")) * time.Microsecond,
		}
		p := Pool{Rate: rate, Burst: lease.MaxTokens}
		p.X = lease.Tokens(rapid.Int64Range(0, int64(rate.Tokens)).Draw(t, "x"))
		latest := lease.Time(0)
		for _, at := range rapid.SliceOf(rapid.Int64Range(0, 1e9)).Draw(t, "times") {
			latest = max(latest, lease.Time(at))
			p.advance(lease.Time(at))
		}
		want := new(big.Int).Mul(big.NewInt(int64(rate.Tokens-p.X)), big.NewInt(int64(latest)))
		want.Div(want, big.NewInt(int64(rate.Per/time.Microsecond)))
		if want.Cmp(big.NewInt(int64(lease.MaxTokens))) >= 0 {
			return // clamped, and the remainder with it
		}
		if p.Available != lease.Tokens(want.Int64()) || p.MintedAt != latest {
			t.Errorf("%d available at %d, want %v at %d", p.Available, p.MintedAt, want, latest)
		}
	})
}

// A full bucket has no remainder: the first token after it was full takes a
// whole token's time.
func TestFullBucketForgetsItsRemainder(t *testing.T) {
	b := newTaker(t, 2, 5)
	if b.take(1, 499); b.take(5, 499) != 4 {
		t.Fatal("a full bucket of 5 has 5")
	}
	if got := b.take(1, 998); got != 0 {
		t.Errorf("a token after 499 ms at 2/s")
	}
	if got := b.take(1, 999); got != 1 {
		t.Errorf("no token after 500 ms at 2/s")
	}
}

// A pool that mints absurdly much for ever keeps its account.
func TestSumsStayWithinTheirType(t *testing.T) {
	b := bucket(0, 10, policy.Dynamic)
	b.Contract.Rate = lease.Rate{Tokens: lease.MaxTokens, Per: time.Microsecond}
	d := newDesk(t, b, lumps(5, "us")...)
	d.sync("us", lump("i", 1, 5))
	for range 3000 {
		d.pass(time.Second)
		d.sweep()
	}
	d.expect("after all that", 10, 0)
}

// endow keeps the sum at the ceiling or below for every cap that it may be
// asked about, and gives no more than there is.
func TestEndowMakesRoom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amount := rapid.OneOf(rapid.Int64Range(0, 20), rapid.Int64Range(0, int64(lease.MaxTokens)))
		p := Pool{Burst: lease.Tokens(amount.Draw(t, "burst")), Float: lease.Tokens(rapid.Int64Range(0, 9).Draw(t, "float"))}
		p.Outstanding = min(lease.Tokens(amount.Draw(t, "outstanding")), p.ceiling())
		p.Available = min(lease.Tokens(amount.Draw(t, "available"))-5, p.Burst, p.ceiling()-p.Outstanding)
		beta := min(lease.Tokens(amount.Draw(t, "beta")), p.room()+max(0, p.Available))
		n := p.endow(beta)
		if n < 0 || n > max(0, p.Available) || n > beta {
			t.Errorf("endow(%d) is %d of %d", beta, n, p.Available)
		}
		if max(0, p.Available)-n+p.Outstanding+beta > p.ceiling() {
			t.Errorf("endow(%d) is %d: the sum exceeds the ceiling: %+v", beta, n, p)
		}
	})
}
