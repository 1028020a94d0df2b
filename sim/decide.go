package sim

import (
	"context"
	"time"

	"github.com/ration-dev/ration/agent"
	"github.com/ration-dev/ration/lease"
)

// waiting is a decision that waits for tokens from afar, or n of them that
// came at one instant.
type waiting struct {
	p       *process
	s       *stream
	pending *agent.Pending
	n       int64
	cost    lease.Tokens
	since   time.Duration
	over    bool
}

// request lets one request, or n equal ones, be decided in the region.
func (s *stream) request(n int64, cost lease.Tokens) {
	w := s.w
	s.offered(n, cost)
	if w.yardstick {
		s.yard(n, cost)
		return
	}
	p := s.region.running()
	if p == nil {
		s.outcome(n, 0, cost, agent.Answer{Outcome: agent.Unavailable}, nil)
		return
	}
	w.decisions++
	check := agent.Check{Budgets: s.names, Cost: cost, Deadline: s.spec.Deadline}
	if n == 1 {
		p.decides(&check, func() {
			answer, pending, err := p.decider.Begin(context.Background(), check)
			s.concluded(p, 1, 0, cost, answer, pending, err)
		})
		return
	}
	if len(s.names) > 1 { // several budgets at once are decided one by one
		for range n {
			answer, pending, err := p.decider.Begin(context.Background(), check)
			s.concluded(p, 1, 0, cost, answer, pending, err)
		}
		return
	}
	admitted, answer, pending, err := p.decider.Many(context.Background(), check, n)
	s.concluded(p, n, admitted, cost, answer, pending, err)
}

// concluded books what came of n requests, of which admitted are allowed and
// the others got the answer, or wait.
func (s *stream) concluded(p *process, n, admitted int64, cost lease.Tokens, answer agent.Answer, pending *agent.Pending, err error) {
	w := s.w
	if err != nil { // the budget is not known there
		answer = agent.Answer{Outcome: agent.Unavailable}
	}
	if n == 1 && pending == nil && answer.Outcome == agent.Allowed {
		admitted = 1
	}
	// A frozen process decides by its own clock what it has in its memory; what
	// its store took was admitted there and then.
	if p.skew > 0 && answer.Mode == agent.FromPrefetch {
		rest := n
		if pending != nil {
			rest = admitted
		}
		w.after(p.skew, call(func() { s.outcome(rest, admitted, cost, answer, p) }))
	} else if pending == nil {
		s.outcome(n, admitted, cost, answer, p)
	} else if admitted > 0 {
		s.outcome(admitted, admitted, cost, agent.Answer{Outcome: agent.Allowed, Mode: agent.FromStore}, p)
	}
	if pending != nil {
		p.wait(&waiting{p: p, s: s, pending: pending, n: n - admitted, cost: cost, since: w.now})
	}
	if len(p.urgent) > 0 || p.skew > 0 {
		p.caught()
	}
}

// wait resumes a decision when its time has come; arrived does so sooner.
func (p *process) wait(d *waiting) {
	p.waiting = append(p.waiting, d)
	p.w.coverage.Waited++
	at := d.pending.At
	p.w.at(max(p.clock.when(at, p.w.now), p.w.now+time.Microsecond), call(func() {
		p.do(call(func() {
			if !d.over && d.pending.At == at {
				d.resume()
			}
		}))
	}))
}

func (d *waiting) resume() {
	d.over = true
	admitted, answer, pending, err := d.p.decider.ResumeMany(context.Background(), d.pending, d.n)
	d.s.concluded(d.p, d.n, admitted, d.cost, answer, pending, err)
	d.p.forget()
}

func (p *process) forget() {
	kept := p.waiting[:0]
	for _, d := range p.waiting {
		if !d.over {
			kept = append(kept, d)
		}
	}
	clear(p.waiting[len(kept):])
	p.waiting = kept
}

// arrived resumes the decisions whose tokens have come.
func (p *process) arrived() {
	if len(p.waiting) == 0 {
		return
	}
	for _, d := range append([]*waiting(nil), p.waiting...) {
		if d.over {
			continue
		}
		select {
		case <-d.pending.Arrived:
			d.resume()
		default:
		}
	}
}
