package rpc

import (
	"math"
	"reflect"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	rationv1 "github.com/ration-dev/ration/api/ration/v1"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// fill sets every field of v to a drawn value, so that a field which the
// messages lack is lost on the way and seen.
func fill(t *rapid.T, v reflect.Value) {
	switch v.Interface().(type) {
	case time.Duration:
		v.SetInt(rapid.Int64Range(0, maxMicros).Draw(t, "us") * int64(time.Microsecond))
		return
	case lease.Kind:
		v.SetUint(rapid.Uint64Range(1, lease.Kinds).Draw(t, "kind"))
		return
	case lease.Status:
		v.SetUint(rapid.Uint64Range(1, uint64(lease.NotPlanned)).Draw(t, "status"))
		return
	case lease.Shortage:
		v.SetUint(rapid.Uint64Range(0, uint64(lease.LimitZero)).Draw(t, "shortage"))
		return
	case policy.Strategy:
		v.SetString(string(rapid.SampledFrom(strategies).Draw(t, "strategy")))
		return
	case policy.Period:
		v.SetString(string(rapid.SampledFrom(periods).Draw(t, "period")))
		return
	case policy.FailureMode:
		v.SetString(string(rapid.SampledFrom(failureModes).Draw(t, "mode")))
		return
	case policy.OnStoreLoss:
		v.SetString(string(rapid.SampledFrom(storeLosses).Draw(t, "loss")))
		return
	case *lease.Error:
		return // an item with an error has nothing else; tested on its own
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(rapid.String().Draw(t, "text"))
	case reflect.Int64:
		v.SetInt(rapid.Int64().Draw(t, "int"))
	case reflect.Uint64:
		v.SetUint(rapid.Uint64().Draw(t, "uint"))
	case reflect.Float64:
		v.SetFloat(rapid.Float64().Draw(t, "float"))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "bool"))
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i))
		}
	case reflect.Slice:
		if n := rapid.IntRange(0, 3).Draw(t, "length"); n > 0 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
		}
		for i := range v.Len() {
			fill(t, v.Index(i))
		}
	case reflect.Map:
		if m := rapid.MapOfN(rapid.String(), rapid.String(), 0, 3).Draw(t, "map"); len(m) > 0 {
			v.Set(reflect.ValueOf(m))
		}
	default:
		t.Fatalf("%v: teach fill this type", v.Type())
	}
}

func drawn[T any](t *rapid.T) T {
	var v T
	fill(t, reflect.ValueOf(&v).Elem())
	return v
}

// sent returns m as another process receives it.
func sent[M proto.Message](t *rapid.T, m M) M {
	data, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	received := m.ProtoReflect().New().Interface()
	if err := proto.Unmarshal(data, received); err != nil {
		t.Fatal(err)
	}
	return received.(M)
}

// Caught: Report.Regrant not copied.
func TestRequestsArriveAsTheyWereSent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawn[lease.SyncRequest](t)
		got, refused := readable(sent(t, requestToProto(want)), want.Region)
		for _, r := range refused {
			if r != nil {
				t.Fatalf("refused: %v", r)
			}
		}
		if len(want.Items) == 0 {
			want.Items = got.Items[:0]
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("got  %+v\nwant %+v", got, want)
		}
	})
}

// Caught: State.Holder not copied.
func TestRepliesArriveAsTheyWereSent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawn[lease.ItemReply](t)
		m := sent(t, itemReplyToProto(&want))
		if got := itemReplyFromProto(m, want.Budget, 0); !reflect.DeepEqual(got, want) {
			t.Fatalf("got  %+v\nwant %+v", got, want)
		}
		want = lease.ItemReply{Budget: want.Budget, Err: lease.Errorf(lease.Foreign, "f", "r")}
		m = sent(t, itemReplyToProto(&want))
		if got := itemReplyFromProto(m, want.Budget, 0); !reflect.DeepEqual(got, want) {
			t.Fatalf("got  %+v\nwant %+v", got, want)
		}
	})
}

// Caught: Region.Floor not copied.
func TestBudgetsArriveAsTheyWereSent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawn[policy.List](t)
		m, err := listToProto(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := listFromProto(sent(t, m))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("got  %+v, %v\nwant %+v", got, err, want)
		}
	})
}

// The numbers of the wire's enums are those of Go's, by name.
func TestEnumsHaveTheNamesOfTheirWords(t *testing.T) {
	for k := lease.Kind(1); k <= lease.Kinds; k++ {
		same(t, rationv1.Kind(k).String(), "KIND_", k.String())
	}
	for s := lease.PoolEmpty; s <= lease.LimitZero; s++ {
		same(t, rationv1.Shortage(s).String(), "SHORTAGE_", s.String())
	}
	for status, word := range map[lease.Status]string{lease.Active: "active", lease.Ended: "ended", lease.NotPlanned: "not_planned"} {
		same(t, rationv1.LeaseStatus(status).String(), "LEASE_STATUS_", word)
	}
	words(t, strategies, "STRATEGY_", rationv1.Strategy_name)
	words(t, periods, "PERIOD_", rationv1.Period_name)
	words(t, failureModes, "MODE_", rationv1.Failure_Mode_name)
	words(t, storeLosses, "ON_STORE_LOSS_", rationv1.OnStoreLoss_name)
	if n := len(rationv1.Kind_name); n != lease.Kinds+1 {
		t.Errorf("%d kinds on the wire", n)
	}
	if n := len(rationv1.Shortage_name); n != int(lease.LimitZero)+1 {
		t.Errorf("%d shortages on the wire", n)
	}
}

func words[W ~string](t *testing.T, list []W, prefix string, names map[int32]string) {
	t.Helper()
	if len(list) != len(names) {
		t.Errorf("%s: %d words for %d values", prefix, len(list), len(names))
	}
	for i, w := range list[1:] {
		same(t, names[int32(i+1)], prefix, string(w))
	}
}

func same(t *testing.T, name, prefix, word string) {
	t.Helper()
	if name != prefix+upper(word) {
		t.Errorf("the wire says %s for %q", name, word)
	}
}

func upper(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'a' <= c && c <= 'z' {
			b[i] = c - 'a' + 'A'
		}
	}
	return string(b)
}

func TestWhatGoCannotHoldIsRefusedByField(t *testing.T) {
	report := func(r *rationv1.LeaseReport) *rationv1.SyncItem {
		return &rationv1.SyncItem{Budget: "b", Leases: []*rationv1.LeaseReport{{Kind: 1}, r}}
	}
	for field, item := range map[string]*rationv1.SyncItem{
		"items[7].leases[1].kind":     report(&rationv1.LeaseReport{Kind: 4}),
		"items[7].leases[1].x.per_us": report(&rationv1.LeaseReport{Kind: 2, X: &rationv1.Rate{PerUs: maxMicros + 1}}),
		"items[7].rtt_us":             {Budget: "b", RttUs: math.MinInt64},
		"items[7].leases":             {Budget: "b", Leases: make([]*rationv1.LeaseReport, lease.Kinds+1)},
		"items[7].local":              {Budget: "b", Local: make([]*rationv1.LocalUse, lease.MaxLocal+1)},
	} {
		if _, err := itemFromProto(item, 7); err == nil || err.Code != lease.Invalid || err.Field != field {
			t.Errorf("want a refusal of %s, got %v", field, err)
		}
	}
	if _, err := itemFromProto(report(&rationv1.LeaseReport{Kind: -1}), 0); err == nil {
		t.Error("a negative kind passed")
	}
}

func TestAReplyThatCannotBeReadIsAnUnknownOutcome(t *testing.T) {
	state := func(s *rationv1.LeaseState) *rationv1.SyncItemReply {
		return &rationv1.SyncItemReply{Budget: "b", Leases: []*rationv1.LeaseState{s}}
	}
	for field, m := range map[string]*rationv1.SyncItemReply{
		"items[2].budget":                   {Budget: "another"},
		"items[2].leases[0].kind":           state(&rationv1.LeaseState{Status: 1}),
		"items[2].leases[0].status":         state(&rationv1.LeaseState{Kind: 1, Status: 9}),
		"items[2].leases[0].shortage":       state(&rationv1.LeaseState{Kind: 1, Status: 1, Shortage: 77}),
		"items[2].leases[0].ttl_us":         state(&rationv1.LeaseState{Kind: 1, Status: 1, TtlUs: math.MaxInt64}),
		"items[2].leases[0].x.per_us":       state(&rationv1.LeaseState{Kind: 1, Status: 1, X: &rationv1.Rate{PerUs: math.MaxInt64}}),
		"items[2].leases[0].retry_after_us": state(&rationv1.LeaseState{Kind: 1, Status: 1, RetryAfterUs: math.MaxInt64}),
	} {
		got := itemReplyFromProto(m, "b", 2)
		if got.Err == nil || got.Err.Code != lease.Unavailable || got.Err.Field != field || got.Leases != nil || got.Budget != "b" {
			t.Errorf("%s: got %+v", field, got)
		}
	}
	if _, err := replyFromProto(&rationv1.SyncLeasesResponse{}, lease.SyncRequest{Items: make([]lease.Item, 1)}); lease.CodeOf(err) != lease.Unavailable {
		t.Errorf("a reply without its item: %v", err)
	}
}

func TestAListWithAnUnknownWordIsRefusedWhole(t *testing.T) {
	_, err := listFromProto(&rationv1.ListBudgetsResponse{Budgets: []*rationv1.Budget{{Name: "a"}, {Name: "b", Strategy: 12}}})
	if lease.CodeOf(err) != lease.Invalid || err.(*lease.Error).Field != "budgets[1].strategy" {
		t.Errorf("got %v", err)
	}
	_, err = listToProto(policy.List{Budgets: []policy.Budget{{Name: "b", Strategy: "magic"}}})
	if lease.CodeOf(err) != lease.Internal {
		t.Errorf("got %v", err)
	}
}
