package explore

import (
	"bytes"
	"encoding/binary"
	"slices"
	"time"

	"github.com/ration-dev/ration/allocation"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/regionstore"
)

// codec walks over a world in a fixed order and writes each field that
// matters, or reads it: one walk for both, so that they cannot differ. What is
// left out has no bearing on anything that may still happen, or is restored.
type codec struct {
	m    *model
	buf  []byte
	at   int
	read bool
	// spare is scratch for sorting.
	spare []byte
	ends  []int
	ids   []uint64
}

// v writes a small number in one byte, any in nine, and returns it; or reads
// and returns one.
func (c *codec) v(x int64) int64 {
	if c.read {
		b := c.buf[c.at]
		c.at++
		if b < 255 {
			return int64(b) - 100
		}
		x = int64(binary.LittleEndian.Uint64(c.buf[c.at:]))
		c.at += 8
		return x
	}
	if x >= -100 && x < 155 {
		c.buf = append(c.buf, byte(x+100))
		return x
	}
	c.buf = append(c.buf, 255)
	c.buf = binary.LittleEndian.AppendUint64(c.buf, uint64(x))
	return x
}

func num[T ~int | ~int8 | ~uint8 | ~int64 | ~uint64](c *codec, p *T) { *p = T(c.v(int64(*p))) }

func (c *codec) bool(p *bool) {
	x := int64(0)
	if *p {
		x = 1
	}
	*p = c.v(x) == 1
}

func (c *codec) bools(ps ...*bool) {
	x := int64(0)
	for i, p := range ps {
		if *p {
			x |= 1 << i
		}
	}
	x = c.v(x)
	for i, p := range ps {
		*p = x&(1<<i) != 0
	}
}

// when keeps a time relative to its clock, in whole ticks, no earlier than
// least: what lies further back makes no difference. One that is not relevant
// is not kept.
func (c *codec) when(t *lease.Time, now lease.Time, least int64, relevant bool) {
	if !relevant {
		if c.read {
			*t = 0
		}
		return
	}
	const unit = lease.Time(tick / time.Microsecond)
	if c.read {
		*t = now + lease.Time(c.v(0))*unit
		return
	}
	d := *t - now
	if d%unit != 0 {
		panic("explore: a time between two ticks")
	}
	c.v(max(int64(d/unit), least))
}

func (c *codec) incarnation(kind lease.Kind, p *lease.Incarnation) {
	*p = incarnations[kind-1][c.v(number(*p))]
}

// times in ticks after which nothing depends on them any more.
func (c *codec) longAgo() int64 { return -c.m.longest - int64(c.m.cfg.Drift) - 4 }

// world is the walk. When reading, w's slices are reused.
func (c *codec) world(w *world) {
	cfg := c.m.cfg
	if c.read {
		w.ledgerNow, w.storeNow, w.processNow = epoch, epoch, epoch
	}
	num(c, &w.variant)
	num(c, &w.lag)
	num(c, &w.behind)
	num(c, &w.level)
	num(c, &w.life)
	num(c, &w.local)
	num(c, &w.declared)
	num(c, &w.lives)
	for _, k := range cfg.Kinds {
		num(c, &w.drawn[k-1])
	}
	num(c, &w.left.crashes)
	num(c, &w.left.steps)
	num(c, &w.left.changes)
	num(c, &w.left.locals)
	num(c, &w.left.ticks)
	if !c.read {
		c.m.rename(w, c)
	}
	c.ledger(w)
	for i := range w.stores {
		s := &w.stores[i]
		c.bool(&s.on)
		if !s.on {
			if c.read {
				*s = store{}
			}
			continue
		}
		num(c, &s.life)
		c.row(&s.row, w)
	}
	c.row(&w.copied, w)
	c.messages(w)
	c.processes(w)
}

// ledger keeps the account. Its totals are sums that no step reads, save to
// check that they add up; they are restored so that they do.
func (c *codec) ledger(w *world) {
	s := &w.ledger
	if c.read {
		s.Budget = c.m.cfg.Budgets[w.variant]
		s.Pools = append(s.Pools[:0], allocation.Pool{})
		s.Regions = append(s.Regions[:0], allocation.Region{Name: region, SeenAt: epoch})
	}
	p := &s.Pools[0]
	num(c, &p.Rate.Tokens)
	c.seconds(&p.Rate.Per)
	num(c, &p.Burst)
	num(c, &p.Float)
	num(c, &p.Available)
	num(c, &p.X)
	num(c, &p.Outstanding)
	c.when(&p.MintedAt, w.ledgerNow, -1<<40, true)
	num(c, &p.Carry)
	n := int(c.v(int64(len(s.Leases))))
	if c.read {
		s.Leases = append(s.Leases[:0], noLeases[:n]...)
	}
	for i := range s.Leases {
		c.lease(&s.Leases[i], w.ledgerNow)
	}
	c.locals(s)
	if c.read {
		balance(s)
	}
}

var noLeases [16]allocation.Lease

var endings = [...]allocation.Ending{allocation.Open, allocation.Expired, allocation.Regranted, allocation.Closed}

func (c *codec) lease(l *allocation.Lease, now lease.Time) {
	num(c, &l.Kind)
	c.incarnation(l.Kind, &l.Incarnation)
	num(c, &l.Seq)
	num(c, &l.Granted)
	num(c, &l.Used)
	num(c, &l.Returned)
	num(c, &l.Hold)
	c.bool(&l.Closing)
	l.Ending = endings[c.v(int64(slices.Index(endings[:], l.Ending)))]
	num(c, &l.WrittenOff)
	num(c, &l.LateUsed)
	num(c, &l.LateReturned)
	num(c, &l.LateCredited)
	num(c, &l.X)
	if l.Kind.IsShare() {
		num(c, &l.ToldX)
		num(c, &l.Beta)
		num(c, &l.ToldBeta)
		num(c, &l.Minted)
		num(c, &l.MintCarry)
	}
	c.when(&l.MintedAt, now, -1<<40, l.X > 0)
	open := l.Ending == allocation.Open
	c.when(&l.Reclaim, now, -1<<40, open || l.Hold > 0)
	if open {
		c.seconds(&l.TTL)
	}
	if c.read {
		l.Region, l.EndedAt = region, now
		if l.X == 0 {
			l.MintedAt = now
		}
	}
}

func (c *codec) seconds(d *time.Duration) { *d = time.Duration(c.v(int64(*d/tick))) * tick }

func (c *codec) locals(s *allocation.State) {
	if c.m.cfg.Locals == 0 {
		return
	}
	n := int(c.v(int64(len(s.Locals))))
	if c.read {
		s.Locals = append(s.Locals[:0], make([]allocation.Local, n)...)
	}
	for i := range s.Locals {
		l := &s.Locals[i]
		l.Source = lifeNames[c.v(number(l.Source))]
		num(c, &l.Total)
		if c.read {
			l.Region, l.SeenAt = region, epoch
		}
	}
}

// balance gives the pool the totals that its rows add up to.
func balance(s *allocation.State) {
	p := &s.Pools[0]
	t := allocation.Totals{}
	holds := lease.Tokens(0)
	for i := range s.Leases {
		l := &s.Leases[i]
		t.LateCredited += l.LateCredited
		if l.Kind == lease.Lump {
			t.LumpGranted += l.Granted
			t.LumpUsed += l.Used
			t.LumpReturned += l.Returned
			t.LumpWrittenOff += l.WrittenOff
			holds += l.Hold
			continue
		}
		t.ShareGiven += l.Granted
		t.ShareReturned += l.Returned
		t.ShareUsed += l.Used
		t.ShareWrittenOff += l.WrittenOff
	}
	t.Start = p.Available + t.ShareGiven - t.ShareReturned + t.LumpUsed + holds + t.LumpWrittenOff - t.LateCredited
	p.Totals = t
}

// row keeps one wallet.
func (c *codec) row(r *regionstore.Row, w *world) {
	if c.read {
		*r = regionstore.Row{}
	}
	r.Replid = lifeNames[c.v(number(r.Replid))]
	if r.Replid == "" {
		return
	}
	for _, k := range c.m.cfg.Kinds {
		c.wallet(&r.Leases[k-1], k, w)
	}
	if c.m.cfg.Locals > 0 {
		l := &r.Local
		l.Nonce = lifeNames[c.v(number(l.Nonce))]
		num(c, &l.Rate.Tokens)
		c.seconds(&l.Rate.Per)
		num(c, &l.Burst)
		num(c, &l.Balance)
		num(c, &l.Carry)
		num(c, &l.Total)
		c.when(&l.Mark, w.storeNow, c.longAgo(), true)
	}
}

func (c *codec) wallet(l *regionstore.Lease, k lease.Kind, w *world) {
	now, ago := w.storeNow, c.longAgo()
	c.incarnation(k, &l.Incarnation)
	if l.Incarnation == "" {
		return
	}
	granted := l.Deadline != 0
	c.bools(&l.Pending, &l.Closed, &l.Ended, &granted)
	num(c, &l.Seq)
	if l.Seq > 0 {
		c.report(&l.Sent, k)
	}
	c.when(&l.Anchor, now, ago, l.Pending || c.m.exact)
	c.when(&l.Deadline, now, ago, granted)
	num(c, &l.Granted)
	num(c, &l.Used)
	num(c, &l.Returned)
	if k.IsShare() {
		c.incarnation(k, &l.Lost)
		num(c, &l.X.Tokens)
		c.seconds(&l.X.Per)
		num(c, &l.Beta)
		num(c, &l.Balance)
		num(c, &l.Carry)
		c.when(&l.Mark, now, ago, granted || c.m.exact)
	}
	c.generation(&l.Cur, now)
	c.generation(&l.Prev, now)
}

func (c *codec) generation(g *regionstore.Generation, now lease.Time) {
	if c.m.cfg.Processes == 0 {
		return
	}
	num(c, &g.ID)
	num(c, &g.Tokens)
	c.when(&g.Opened, now, -4-int64(c.m.cfg.Drift), g.Tokens > 0)
	c.when(&g.Until, now, c.longAgo(), g.Tokens > 0)
}

func (c *codec) report(r *lease.Report, k lease.Kind) {
	r.Kind = k
	c.incarnation(k, &r.Incarnation)
	num(c, &r.Seq)
	num(c, &r.Used)
	num(c, &r.Returned)
	num(c, &r.Prefetched)
	c.bool(&r.Closed)
	if k == lease.Lump {
		num(c, &r.Want)
		return
	}
	num(c, &r.X.Tokens)
	c.seconds(&r.X.Per)
	num(c, &r.Beta)
	num(c, &r.Granted)
	c.incarnation(k, &r.Regrant)
}

// messages keeps both sets, each in the order of its bytes.
func (c *codec) messages(w *world) {
	if c.read {
		w.requests = append(w.requests[:0], make([]request, c.v(0))...)
		for i := range w.requests {
			c.request(&w.requests[i])
		}
		w.replies = append(w.replies[:0], make([]reply, c.v(0))...)
		for i := range w.replies {
			c.reply(&w.replies[i])
		}
		return
	}
	c.set(len(w.requests), func(i int) { c.request(&w.requests[i]) })
	c.set(len(w.replies), func(i int) { c.reply(&w.replies[i]) })
}

func (c *codec) request(r *request) {
	num(c, &r.n)
	for i := range r.n {
		num(c, &r.reports[i].Kind)
		c.report(&r.reports[i], r.reports[i].Kind)
	}
	if c.m.cfg.Locals > 0 {
		r.local.Source = lifeNames[c.v(number(r.local.Source))]
		num(c, &r.local.Total)
	}
}

func (c *codec) reply(r *reply) {
	num(c, &r.n)
	for i := range r.n {
		s := &r.states[i]
		num(c, &s.Kind)
		c.incarnation(s.Kind, &s.Incarnation)
		num(c, &s.Seq)
		num(c, &s.Status)
		switch s.Status {
		case lease.Active:
			num(c, &s.Granted)
			c.seconds(&s.TTL)
			if s.Kind.IsShare() {
				num(c, &s.X.Tokens)
				c.seconds(&s.X.Per)
				num(c, &s.Beta)
			}
		case lease.NotPlanned:
			c.incarnation(s.Kind, &s.Holder)
		}
	}
}

// set writes n things in the order of their bytes, each once, after how many
// those are.
func (c *codec) set(n int, write func(i int)) {
	start := len(c.buf)
	c.ends = c.ends[:0]
	for i := range n {
		write(i)
		c.ends = append(c.ends, len(c.buf))
	}
	c.spare = append(c.spare[:0], c.buf[start:]...)
	c.buf = c.buf[:start]
	var pieces [64][]byte
	from := 0
	for i, end := range c.ends {
		pieces[i] = c.spare[from : end-start]
		from = end - start
	}
	sorted := pieces[:n]
	slices.SortFunc(sorted, bytes.Compare)
	sorted = slices.CompactFunc(sorted, bytes.Equal)
	c.v(int64(len(sorted)))
	for _, p := range sorted {
		c.buf = append(c.buf, p...)
	}
}

// processes keeps the processes; which is which makes no difference.
func (c *codec) processes(w *world) {
	n := max(c.m.cfg.Processes, c.m.callers)
	if n == 0 {
		return
	}
	if c.read {
		c.at++ // how many follow
		for i := range n {
			c.process(&w.processes[i], w)
		}
		return
	}
	start := len(c.buf)
	c.buf = append(c.buf, byte(n))
	c.process(&w.processes[0], w)
	if n == 1 {
		return
	}
	mid := len(c.buf)
	c.process(&w.processes[1], w)
	if bytes.Compare(c.buf[start+1:mid], c.buf[mid:]) > 0 {
		c.spare = append(c.spare[:0], c.buf[start+1:mid]...)
		k := copy(c.buf[start+1:], c.buf[mid:])
		copy(c.buf[start+1+k:], c.spare)
	}
}

func (c *codec) process(p *process, w *world) {
	if c.m.cfg.tracked() {
		c.bool(&p.known)
		c.when(&p.bound, w.storeNow, -8, p.known)
	}
	c.parts(&p.parts, w.processNow)
	if c.m.cfg.Late {
		c.parts(&p.coming, w.processNow)
		c.when(&p.sent, w.processNow, -4, len(p.coming) > 0)
	}
	s := &p.settling
	num(c, &s.Kind)
	if s.Kind == 0 {
		return
	}
	c.incarnation(s.Kind, &s.Incarnation)
	num(c, &s.Generation)
	num(c, &s.Used)
	num(c, &s.Back)
}

func (c *codec) parts(ps *[]part, now lease.Time) {
	n := int(c.v(int64(len(*ps))))
	if c.read {
		*ps = append((*ps)[:0], make([]part, n)...)
	}
	for i := range *ps {
		q := &(*ps)[i]
		num(c, &q.kind)
		c.incarnation(q.kind, &q.incarnation)
		num(c, &q.generation)
		num(c, &q.free)
		num(c, &q.used)
		c.when(&q.deadline, now, 0, true)
	}
}

// rename numbers the generations of each lease anew, in their order. Only
// whether two are the same, and which is the newest, makes a difference.
func (m *model) rename(w *world, c *codec) {
	if m.cfg.Processes == 0 {
		return
	}
	for _, k := range m.cfg.Kinds {
		for life := 1; life <= m.cfg.Lives; life++ {
			c.ids = c.ids[:0]
			inc := incarnations[k-1][life]
			eachGeneration(w, k, inc, func(id *uint64) {
				if *id != 0 && !slices.Contains(c.ids, *id) {
					c.ids = append(c.ids, *id)
				}
			})
			if len(c.ids) == 0 {
				continue
			}
			slices.Sort(c.ids)
			eachGeneration(w, k, inc, func(id *uint64) {
				if *id != 0 {
					*id = uint64(slices.Index(c.ids, *id) + 1)
				}
			})
		}
	}
}

// eachGeneration visits every mention of a generation of a lease.
func eachGeneration(w *world, k lease.Kind, inc lease.Incarnation, visit func(*uint64)) {
	inRow := func(r *regionstore.Row) {
		l := &r.Leases[k-1]
		if r.Replid == "" || l.Incarnation != inc {
			return
		}
		if l.Prev.Tokens == 0 {
			l.Prev = regionstore.Generation{} // nothing can be settled there
		}
		visit(&l.Cur.ID)
		visit(&l.Prev.ID)
	}
	inRow(&w.stores[0].row)
	inRow(&w.stores[1].row)
	inRow(&w.copied)
	for i := range w.processes {
		p := &w.processes[i]
		for _, list := range [...][]part{p.parts, p.coming} {
			for j := range list {
				if list[j].kind == k && list[j].incarnation == inc {
					visit(&list[j].generation)
				}
			}
		}
		if s := &p.settling; s.Kind == k && s.Incarnation == inc {
			visit(&s.Generation)
		}
	}
}

// hash is 128 bits of what b holds.
func hash(b []byte) [2]uint64 {
	h := [2]uint64{0x9E3779B97F4A7C15 ^ uint64(len(b)), 0xC2B2AE3D27D4EB4F}
	for len(b) >= 8 {
		h = mix(h, binary.LittleEndian.Uint64(b))
		b = b[8:]
	}
	var last [8]byte
	copy(last[:], b)
	return mix(mix(h, binary.LittleEndian.Uint64(last[:])), 0x165667B19E3779F9)
}
