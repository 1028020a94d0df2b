package postgres

import (
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ration-dev/ration/allocation"
	"github.com/ration-dev/ration/lease"
)

// owned is a row with the budget it belongs to.
type owned[R any] struct {
	budget string
	row    R
}

type (
	poolRow   = owned[allocation.Pool]
	leaseRow  = owned[allocation.Lease]
	regionRow = owned[allocation.Region]
	localRow  = owned[allocation.Local]
)

// column collects one value of each of many rows.
func column[R, T any](rows []R, get func(R) T) []T {
	values := make([]T, len(rows))
	for i, r := range rows {
		values[i] = get(r)
	}
	return values
}

func budgetColumn[R any](rows []owned[R]) [][]byte {
	values := make([][]byte, len(rows))
	for i := range rows {
		values[i] = []byte(rows[i].budget)
	}
	return values
}

// field is a column of any other kind.
func field[R, T any](rows []owned[R], get func(*R) T) []T {
	values := make([]T, len(rows))
	for i := range rows {
		values[i] = get(&rows[i].row)
	}
	return values
}

// number is a column of whole numbers.
func number[R any, N ~int64](rows []owned[R], get func(*R) N) []int64 {
	values := make([]int64, len(rows))
	for i := range rows {
		values[i] = int64(get(&rows[i].row))
	}
	return values
}

// micros is a column of durations.
func micros[R any](rows []owned[R], get func(*R) time.Duration) []int64 {
	return number(rows, func(r *R) int64 { return int64(get(r) / time.Microsecond) })
}

func bytesColumn[R any, S ~string](rows []owned[R], get func(*R) S) [][]byte {
	return field(rows, func(r *R) []byte { return []byte(get(r)) })
}

func duration(us int64) time.Duration { return time.Duration(us) * time.Microsecond }

// tokensAt and timeAt let pgx read into types of ours without reflection.

func tokensAt(n *lease.Tokens) *int64 { return (*int64)(n) }
func timeAt(t *lease.Time) *int64     { return (*int64)(t) }

// The order of the columns below is that of the statements in sql/.

func scanPool(rows pgx.Rows) (budget []byte, p allocation.Pool, err error) {
	var per int64
	t := &p.Totals
	err = rows.Scan(
		&budget, timeAt(&p.Start), timeAt(&p.End), tokensAt(&p.Rate.Tokens), &per, tokensAt(&p.Burst),
		tokensAt(&p.Float),
		tokensAt(&p.Available), tokensAt(&p.X), tokensAt(&p.Outstanding), timeAt(&p.MintedAt), &p.Carry,
		tokensAt(&t.Start), tokensAt(&t.Minted), tokensAt(&t.Adjusted),
		tokensAt(&t.Clamped), tokensAt(&t.ShareGiven), tokensAt(&t.ShareReturned), tokensAt(&t.ShareUsed),
		tokensAt(&t.ShareWrittenOff), tokensAt(&t.LumpGranted), tokensAt(&t.LumpUsed), tokensAt(&t.LumpReturned),
		tokensAt(&t.LumpWrittenOff), tokensAt(&t.LateUsed), tokensAt(&t.LateCredited), tokensAt(&t.Debt),
		tokensAt(&t.PurgedGiven),
		tokensAt(&t.PurgedShareReturned), tokensAt(&t.PurgedShareUsed), tokensAt(&t.PurgedGranted),
		tokensAt(&t.PurgedUsed), tokensAt(&t.PurgedReturned),
		tokensAt(&t.PurgedWrittenOff), &t.Alarms,
	)
	p.Rate.Per = duration(per)
	return budget, p, err
}

func poolColumns(rows []poolRow) []any {
	type p = allocation.Pool
	tokens := func(get func(*p) lease.Tokens) []int64 { return number(rows, get) }
	return []any{
		budgetColumn(rows),
		number(rows, func(r *p) lease.Time { return r.Start }),
		number(rows, func(r *p) lease.Time { return r.End }),
		tokens(func(r *p) lease.Tokens { return r.Rate.Tokens }),
		micros(rows, func(r *p) time.Duration { return r.Rate.Per }),
		tokens(func(r *p) lease.Tokens { return r.Burst }),
		tokens(func(r *p) lease.Tokens { return r.Float }),
		tokens(func(r *p) lease.Tokens { return r.Available }),
		tokens(func(r *p) lease.Tokens { return r.X }),
		tokens(func(r *p) lease.Tokens { return r.Outstanding }),
		number(rows, func(r *p) lease.Time { return r.MintedAt }),
		number(rows, func(r *p) int64 { return r.Carry }),
		tokens(func(r *p) lease.Tokens { return r.Totals.Start }),
		tokens(func(r *p) lease.Tokens { return r.Totals.Minted }),
		tokens(func(r *p) lease.Tokens { return r.Totals.Adjusted }),
		tokens(func(r *p) lease.Tokens { return r.Totals.Clamped }),
		tokens(func(r *p) lease.Tokens { return r.Totals.ShareGiven }),
		tokens(func(r *p) lease.Tokens { return r.Totals.ShareReturned }),
		tokens(func(r *p) lease.Tokens { return r.Totals.ShareUsed }),
		tokens(func(r *p) lease.Tokens { return r.Totals.ShareWrittenOff }),
		tokens(func(r *p) lease.Tokens { return r.Totals.LumpGranted }),
		tokens(func(r *p) lease.Tokens { return r.Totals.LumpUsed }),
		tokens(func(r *p) lease.Tokens { return r.Totals.LumpReturned }),
		tokens(func(r *p) lease.Tokens { return r.Totals.LumpWrittenOff }),
		tokens(func(r *p) lease.Tokens { return r.Totals.LateUsed }),
		tokens(func(r *p) lease.Tokens { return r.Totals.LateCredited }),
		tokens(func(r *p) lease.Tokens { return r.Totals.Debt }),
		tokens(func(r *p) lease.Tokens { return r.Totals.PurgedGiven }),
		tokens(func(r *p) lease.Tokens { return r.Totals.PurgedShareReturned }),
		tokens(func(r *p) lease.Tokens { return r.Totals.PurgedShareUsed }),
		tokens(func(r *p) lease.Tokens { return r.Totals.PurgedGranted }),
		tokens(func(r *p) lease.Tokens { return r.Totals.PurgedUsed }),
		tokens(func(r *p) lease.Tokens { return r.Totals.PurgedReturned }),
		tokens(func(r *p) lease.Tokens { return r.Totals.PurgedWrittenOff }),
		number(rows, func(r *p) int64 { return r.Totals.Alarms }),
	}
}

func poolKey(p *allocation.Pool) lease.Time { return p.Start }

func poolKeyColumns(rows []poolRow) []any {
	return []any{
		budgetColumn(rows),
		number(rows, func(r *allocation.Pool) lease.Time { return r.Start }),
	}
}

func scanLease(rows pgx.Rows) (budget []byte, l allocation.Lease, err error) {
	var region, incarnation []byte
	var kind, short int16
	var seq, ttl, retryAfter int64
	err = rows.Scan(
		&budget, &region, &kind, &incarnation, timeAt(&l.Window), &seq, tokensAt(&l.Granted), tokensAt(&l.Used),
		tokensAt(&l.Returned), tokensAt(&l.X),
		tokensAt(&l.ToldX), tokensAt(&l.Beta), tokensAt(&l.ToldBeta), tokensAt(&l.Minted), &l.MintCarry,
		timeAt(&l.MintedAt), tokensAt(&l.Hold), &ttl, timeAt(&l.Reclaim), tokensAt(&l.Keep),
		&short, &retryAfter, &l.Closing, &l.Ending, timeAt(&l.EndedAt), tokensAt(&l.WrittenOff),
		tokensAt(&l.LateUsed), tokensAt(&l.LateReturned),
		tokensAt(&l.LateCredited),
	)
	l.Region, l.Incarnation = string(region), lease.Incarnation(incarnation)
	l.Kind, l.Short, l.Seq = lease.Kind(kind), lease.Shortage(short), uint64(seq)
	l.TTL, l.RetryAfter = duration(ttl), duration(retryAfter)
	return budget, l, err
}

func leaseColumns(rows []leaseRow) []any {
	type l = allocation.Lease
	tokens := func(get func(*l) lease.Tokens) []int64 { return number(rows, get) }
	return append(leaseKeyColumns(rows),
		number(rows, func(r *l) lease.Time { return r.Window }),
		number(rows, func(r *l) int64 { return int64(r.Seq) }),
		tokens(func(r *l) lease.Tokens { return r.Granted }),
		tokens(func(r *l) lease.Tokens { return r.Used }),
		tokens(func(r *l) lease.Tokens { return r.Returned }),
		tokens(func(r *l) lease.Tokens { return r.X }),
		tokens(func(r *l) lease.Tokens { return r.ToldX }),
		tokens(func(r *l) lease.Tokens { return r.Beta }),
		tokens(func(r *l) lease.Tokens { return r.ToldBeta }),
		tokens(func(r *l) lease.Tokens { return r.Minted }),
		number(rows, func(r *l) int64 { return r.MintCarry }),
		number(rows, func(r *l) lease.Time { return r.MintedAt }),
		tokens(func(r *l) lease.Tokens { return r.Hold }),
		micros(rows, func(r *l) time.Duration { return r.TTL }),
		number(rows, func(r *l) lease.Time { return r.Reclaim }),
		tokens(func(r *l) lease.Tokens { return r.Keep }),
		field(rows, func(r *l) int16 { return int16(r.Short) }),
		micros(rows, func(r *l) time.Duration { return r.RetryAfter }),
		field(rows, func(r *l) bool { return r.Closing }),
		field(rows, func(r *l) string { return string(r.Ending) }),
		number(rows, func(r *l) lease.Time { return r.EndedAt }),
		tokens(func(r *l) lease.Tokens { return r.WrittenOff }),
		tokens(func(r *l) lease.Tokens { return r.LateUsed }),
		tokens(func(r *l) lease.Tokens { return r.LateReturned }),
		tokens(func(r *l) lease.Tokens { return r.LateCredited }),
	)
}

type leaseID struct {
	region      string
	kind        lease.Kind
	incarnation lease.Incarnation
}

func leaseKey(l *allocation.Lease) leaseID { return leaseID{l.Region, l.Kind, l.Incarnation} }

func leaseKeyColumns(rows []leaseRow) []any {
	return []any{
		budgetColumn(rows),
		bytesColumn(rows, func(r *allocation.Lease) string { return r.Region }),
		field(rows, func(r *allocation.Lease) int16 { return int16(r.Kind) }),
		bytesColumn(rows, func(r *allocation.Lease) lease.Incarnation { return r.Incarnation }),
	}
}

func scanRegion(rows pgx.Rows) (budget []byte, r allocation.Region, err error) {
	var name []byte
	var rtt int64
	err = rows.Scan(
		&budget, &name, &r.Demand, tokensAt(&r.DemandTotal), tokensAt(&r.Waiting), tokensAt(&r.Want), &rtt,
		timeAt(&r.SeenAt), &r.Paced,
		timeAt(&r.Window), tokensAt(&r.WindowGranted),
	)
	r.Name, r.RTT = string(name), duration(rtt)
	return budget, r, err
}

func regionColumns(rows []regionRow) []any {
	type r = allocation.Region
	return append(regionKeyColumns(rows),
		field(rows, func(o *r) float64 { return o.Demand }),
		number(rows, func(o *r) lease.Tokens { return o.DemandTotal }),
		number(rows, func(o *r) lease.Tokens { return o.Waiting }),
		number(rows, func(o *r) lease.Tokens { return o.Want }),
		micros(rows, func(o *r) time.Duration { return o.RTT }),
		number(rows, func(o *r) lease.Time { return o.SeenAt }),
		field(rows, func(o *r) bool { return o.Paced }),
		number(rows, func(o *r) lease.Time { return o.Window }),
		number(rows, func(o *r) lease.Tokens { return o.WindowGranted }),
	)
}

func regionKey(r *allocation.Region) string { return r.Name }

func regionKeyColumns(rows []regionRow) []any {
	return []any{
		budgetColumn(rows),
		bytesColumn(rows, func(r *allocation.Region) string { return r.Name }),
	}
}

func scanLocal(rows pgx.Rows) (budget []byte, l allocation.Local, err error) {
	var region, source []byte
	err = rows.Scan(&budget, &region, &source, tokensAt(&l.Total), timeAt(&l.SeenAt))
	l.Region, l.Source = string(region), string(source)
	return budget, l, err
}

func localColumns(rows []localRow) []any {
	return append(localKeyColumns(rows),
		number(rows, func(r *allocation.Local) lease.Tokens { return r.Total }),
		number(rows, func(r *allocation.Local) lease.Time { return r.SeenAt }),
	)
}

type localID struct{ region, source string }

func localKey(l *allocation.Local) localID { return localID{l.Region, l.Source} }

func localKeyColumns(rows []localRow) []any {
	return []any{
		budgetColumn(rows),
		bytesColumn(rows, func(r *allocation.Local) string { return r.Region }),
		bytesColumn(rows, func(r *allocation.Local) string { return r.Source }),
	}
}
