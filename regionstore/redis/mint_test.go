package redis

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ration-dev/ration/internal/testredis"
	"github.com/ration-dev/ration/lease"
)

// mintBatch mints for every four arguments.
const mintBatch = `
local out = {}
while arg_at < #ARGV do
  local x, per, elapsed, carry = number(), number(), number(), number()
  local n, rest = mint(x, per, elapsed, carry)
  out[#out + 1] = n
  out[#out + 1] = rest
end
return out`

// waitBatch waits, and changes the unit, for every five arguments.
const waitBatch = `
local out = {}
while arg_at < #ARGV do
  local x, per, n, carry, other = number(), number(), number(), number(), number()
  out[#out + 1] = wait(x, per, n, carry)
  out[#out + 1] = rate_in(x, per, other)
end
return out`

type mintCase struct {
	rate    lease.Rate
	elapsed time.Duration
	carry   int64
}

// Minting in doubles is exactly lease.Rate.Mint, at every size of numbers and
// at the edges. Seen to fail with a base of 2048 in muldiv_small, and without
// its carry.
func TestLuaMintsAsTheLedger(t *testing.T) {
	c := sharedClient(t)
	sc := newScript(mustRead("rate") + mintBatch)
	rng := rand.New(rand.NewPCG(1, 2))
	cases := edgeMints()
	for range 20000 {
		cases = append(cases, randomMint(rng))
	}
	for len(cases) > 0 {
		n := min(len(cases), 1000)
		checkMints(t, c, sc, cases[:n])
		cases = cases[n:]
	}
}

func checkMints(t *testing.T, c *redis.Client, sc *script, cases []mintCase) {
	t.Helper()
	args := []any{"", ""}
	for _, m := range cases {
		args = append(args, int64(m.rate.Tokens), micros(m.rate.Per), micros(m.elapsed), m.carry)
	}
	got, err := c.Eval(context.Background(), sc.source, nil, args...).Int64Slice()
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range cases {
		n, rest := m.rate.Mint(m.elapsed, m.carry)
		if got[2*i] != int64(n) || got[2*i+1] != rest {
			t.Fatalf("%+v mints %d carry %d in Lua, %d carry %d in Go", m, got[2*i], got[2*i+1], n, rest)
		}
	}
}

// Waits and changes of unit are exactly lease.Rate's, up to where waits
// saturate. Seen to fail when muldiv_wide left out the lowest digit, and when wait the
// carry.
func TestLuaWaitsAsTheLedger(t *testing.T) {
	c := sharedClient(t)
	sc := newScript(mustRead("rate") + waitBatch)
	rng := rand.New(rand.NewPCG(3, 4))
	cases := edgeMints()
	for range 20000 {
		cases = append(cases, randomMint(rng))
	}
	for len(cases) > 0 {
		n := min(len(cases), 500)
		checkWaits(t, c, sc, cases[:n])
		cases = cases[n:]
	}
}

// checkWaits takes the elapsed time of a case as the tokens to wait for, and
// its carry as another period.
func checkWaits(t *testing.T, c *redis.Client, sc *script, cases []mintCase) {
	t.Helper()
	args := []any{"", ""}
	for _, m := range cases {
		args = append(args, int64(m.rate.Tokens), micros(m.rate.Per), micros(m.elapsed), m.carry, min(m.carry, micros(lease.MaxPeriod)))
	}
	got, err := c.Eval(context.Background(), sc.source, nil, args...).Int64Slice()
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range cases {
		want := int64(-1)
		if d, ok := m.rate.TimeFor(lease.Tokens(micros(m.elapsed)), m.carry); ok {
			want = min(micros(d), 1<<52)
		}
		if got[2*i] != want {
			t.Fatalf("%+v waits %d in Lua, %d in Go", m, got[2*i], want)
		}
		other := time.Duration(min(m.carry, micros(lease.MaxPeriod))) * time.Microsecond
		if in := m.rate.In(other, false).Tokens; got[2*i+1] != int64(in) {
			t.Fatalf("%v is %d per %v in Lua, %d in Go", m.rate, got[2*i+1], other, in)
		}
	}
}

func edgeMints() []mintCase {
	tokens := []int64{0, 1, 2, 999, 1 << 41, 1 << 42, 1<<53 - 2, 1<<53 - 1}
	periods := []int64{0, 1, 2, 1023, 1024, 1_000_000, 1<<41 - 1, micros(lease.MaxPeriod) - 1, micros(lease.MaxPeriod)}
	elapsed := []int64{-1, 0, 1, 1023, 1024, 1 << 42, 1<<53 - 1}
	carries := []int64{-1, 0, 1, 1 << 40, 1<<53 - 1}
	var cases []mintCase
	for _, x := range tokens {
		for _, per := range periods {
			for _, el := range elapsed {
				for _, c := range append(carries, per-1, per) {
					r := lease.Rate{Tokens: lease.Tokens(x), Per: time.Duration(per) * time.Microsecond}
					cases = append(cases, mintCase{r, time.Duration(el) * time.Microsecond, c})
				}
			}
		}
	}
	return cases
}

func randomMint(rng *rand.Rand) mintCase {
	log := func(bits int) int64 { return rng.Int64N(1 << (1 + rng.IntN(bits))) }
	per := min(1+log(42), micros(lease.MaxPeriod))
	return mintCase{
		rate:    lease.Rate{Tokens: lease.Tokens(log(53)), Per: time.Duration(per) * time.Microsecond},
		elapsed: time.Duration(log(53)) * time.Microsecond,
		carry:   rng.Int64N(per),
	}
}

func sharedClient(t testing.TB) *redis.Client {
	t.Helper()
	url, _ := testredis.Shared(t)
	opts, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	c := redis.NewClient(opts)
	t.Cleanup(func() { _ = c.Close() })
	return c
}
