package regionstore

import "github.com/ration-dev/ration/lease"

// TakeLocal admits from the local allowance, a bucket that starts empty and
// that nothing refills but time.
func (s Step) TakeLocal(row *Row, req *LocalRequest) LocalReply {
	if !s.current(row) {
		return LocalReply{Outcome: Missing, Time: s.seen(req.Now)}
	}
	seen := s.pass(row, req.Now)
	row.DemandTotal = add(row.DemandTotal, max(0, req.Demand))
	b := &row.Local
	b.advance(seen, s.Time)
	b.change(req.Rate, req.Burst)
	reply := LocalReply{Outcome: OK, Time: seen}
	cost := max(0, req.Cost)
	switch {
	case cost <= b.Balance && cost <= lease.MaxTokens-b.Total:
		b.Balance -= cost
		b.Total += cost
	case cost > b.Burst:
		reply.Outcome, reply.RetryIn = Short, never
	default:
		reply.Outcome = Short
		reply.RetryIn = wait(b.Rate, cost-b.Balance, b.Carry)
		if reply.RetryIn != never {
			reply.RetryIn = min(reply.RetryIn+behind(b.Mark, seen), maxWait)
		}
	}
	reply.Balance = b.Balance
	return reply
}

// advance mints with the rate and burst in force.
func (b *Local) advance(seen, now lease.Time) {
	b.Balance, b.Mark, b.Carry = mint(b.Rate, b.Burst, seen, now, b.Balance, b.Mark, b.Carry)
}

// change puts another rate and burst in force from now on.
func (b *Local) change(rate lease.Rate, burst lease.Tokens) {
	if rate.Per != b.Rate.Per {
		b.Carry = 0
	}
	b.Rate, b.Burst = rate, max(0, burst)
	b.Balance, b.Carry = fill(b.Balance, b.Burst, 0, b.Carry)
}
