package errorbound_test

import (
	"fmt"
	"math/big"
	"strings"
	"time"
	"unicode"

	"github.com/ration-dev/ration/policy"
)

// evaluate computes a Formula as it is printed, so that what a reader sees is
// what was computed. Rates are tokens per nanosecond and durations nanoseconds,
// so a product of the two is in tokens.
func evaluate(formula string) (value *big.Rat, err error) {
	p := &formulaParser{rest: formula}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%s: %v at %q", formula, r, p.rest)
		}
	}()
	value = p.sum()
	if p.skip(); p.rest != "" {
		panic("left over")
	}
	return value, nil
}

type formulaParser struct{ rest string }

func (p *formulaParser) skip() { p.rest = strings.TrimLeft(p.rest, " ") }

func (p *formulaParser) eat(s string) bool {
	p.skip()
	rest, ok := strings.CutPrefix(p.rest, s)
	if ok {
		p.rest = rest
	}
	return ok
}

func (p *formulaParser) must(s string) {
	if !p.eat(s) {
		panic("want " + s)
	}
}

func (p *formulaParser) sum() *big.Rat {
	v := p.product()
	for {
		switch {
		case p.eat("+ "):
			v = new(big.Rat).Add(v, p.product())
		case p.eat("- "):
			v = new(big.Rat).Sub(v, p.product())
		default:
			return v
		}
	}
}

func (p *formulaParser) product() *big.Rat {
	v := p.factor()
	for p.eat("·") {
		v = new(big.Rat).Mul(v, p.factor())
	}
	return v
}

func (p *formulaParser) factor() *big.Rat {
	switch {
	case p.eat("ceil("):
		v := p.sum()
		p.must(")")
		return roundedUp(v)
	case p.eat("floor("):
		v := p.sum()
		p.must(")")
		return new(big.Rat).Neg(roundedUp(new(big.Rat).Neg(v)))
	case p.eat("min("):
		return p.choose(-1)
	case p.eat("max("):
		return p.choose(1)
	case p.eat("("):
		v := p.sum()
		p.must(")")
		return v
	}
	return p.literal()
}

// choose reads the two operands of min (want -1) or max (want 1).
func (p *formulaParser) choose(want int) *big.Rat {
	a := p.sum()
	p.must(",")
	b := p.sum()
	p.must(")")
	if a.Cmp(b) == want {
		return a
	}
	return b
}

func roundedUp(v *big.Rat) *big.Rat {
	n := new(big.Int).Add(v.Num(), v.Denom())
	n.Sub(n, big.NewInt(1))
	return new(big.Rat).SetInt(n.Div(n, v.Denom()))
}

// literal reads 12, 0.001, 1h0m2.5s, 1000/s or 5/1m30s.
func (p *formulaParser) literal() *big.Rat {
	p.skip()
	end := strings.IndexFunc(p.rest, func(r rune) bool {
		return !unicode.IsDigit(r) && !unicode.IsLetter(r) && r != '.' && r != '/' && r != 'µ'
	})
	if end < 0 {
		end = len(p.rest)
	}
	word := p.rest[:end]
	p.rest = p.rest[end:]
	if strings.Contains(word, "/") {
		r, err := policy.ParseRate(word)
		if err != nil {
			panic(err)
		}
		if r.Zero() {
			return new(big.Rat)
		}
		return big.NewRat(int64(r.Tokens), int64(r.Per))
	}
	if v, ok := new(big.Rat).SetString(word); ok {
		return v
	}
	d, err := time.ParseDuration(word)
	if err != nil {
		panic(err)
	}
	return new(big.Rat).SetInt64(int64(d))
}
