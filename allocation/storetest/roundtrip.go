package storetest

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ration-dev/ration/allocation"
	"github.com/ration-dev/ration/lease"
)

// fill gives every field below v a value of its own that is not zero, so that
// a field added later is covered as well.
func fill(v reflect.Value, next *int64) {
	*next++
	switch v.Kind() {
	case reflect.Int64:
		v.SetInt(math.MaxInt64 - *next*1000) // whole microseconds for durations
		if v.Type() == reflect.TypeFor[time.Duration]() {
			v.SetInt(*next * int64(time.Millisecond))
		}
	case reflect.Int, reflect.Int32:
		v.SetInt(*next)
	case reflect.Uint64:
		v.SetUint(1<<62 + uint64(*next))
	case reflect.Uint8:
		v.SetUint(uint64(*next%3) + 1)
	case reflect.Float64:
		v.SetFloat(float64(*next) / 3)
	case reflect.String:
		v.SetString(fmt.Sprintf("s%d", *next))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), next)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), next)
		fill(v.Index(1), next)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, next)
		fill(value, next)
		v.SetMapIndex(key, value)
	default:
		panic("storetest: cannot fill a " + v.Kind().String())
	}
}

// filled returns a state in which no field is zero, in the order that a store
// keeps.
func filled(name string) *allocation.State {
	s, next := &allocation.State{}, int64(0)
	fill(reflect.ValueOf(s).Elem(), &next)
	s.Budget.Name = name
	s.Pools[0].Start, s.Pools[1].Start = 0, 1<<60
	for i := range s.Leases {
		s.Leases[i].Region, s.Leases[i].Kind = "r", lease.Kind(i+1)
		s.Leases[i].Window = s.Pools[i].Start
		s.Leases[i].Ending = []allocation.Ending{allocation.Expired, allocation.Regranted}[i]
	}
	slices.SortFunc(s.Regions, func(a, b allocation.Region) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(s.Locals, func(a, b allocation.Local) int { return strings.Compare(a.Source, b.Source) })
	for i := range s.Locals {
		s.Locals[i].Region = "r"
	}
	return s
}

func testRoundTrip(t *testing.T, h Harness) {
	want := filled("every field")
	apply(t, h.Store, want)
	expectState(t, load(t, h.Store, "every field"), want)

	// Update writes the same fields as Apply, save the budget itself.
	other, next := filled("every field"), int64(1000)
	fill(reflect.ValueOf(&other.Pools[0].Totals).Elem(), &next)
	fill(reflect.ValueOf(&other.Leases[1].LateUsed).Elem(), &next)
	err := h.Store.Update(ctx, []string{"every field"}, func(_ allocation.Now, states []*allocation.State) error {
		b := states[0].Budget
		*states[0] = *other
		states[0].Budget = b
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	other.Budget = want.Budget
	expectState(t, load(t, h.Store, "every field"), other)
	view, _, err := h.Store.View(ctx, "", 2)
	if err != nil || len(view) != 1 {
		t.Fatalf("View: %d states, %v", len(view), err)
	}
	expectState(t, &view[0], other)
}

func expectState(t *testing.T, got, want *allocation.State) {
	t.Helper()
	if got == nil {
		t.Fatalf("no state of %q is stored", want.Budget.Name)
	}
	if diff := difference("State", reflect.ValueOf(*got), reflect.ValueOf(*want)); diff != "" {
		t.Error(diff)
	}
}

// difference names the first field in which a and b differ; "" for none. Nil
// and empty are the same.
func difference(path string, a, b reflect.Value) string {
	switch a.Kind() {
	case reflect.Struct:
		for i := range a.NumField() {
			if d := difference(path+"."+a.Type().Field(i).Name, a.Field(i), b.Field(i)); d != "" {
				return d
			}
		}
	case reflect.Slice:
		if a.Len() != b.Len() {
			return fmt.Sprintf("%s has %d entries, want %d", path, a.Len(), b.Len())
		}
		for i := range a.Len() {
			if d := difference(fmt.Sprintf("%s[%d]", path, i), a.Index(i), b.Index(i)); d != "" {
				return d
			}
		}
	case reflect.Map:
		if a.Len()+b.Len() > 0 && !reflect.DeepEqual(a.Interface(), b.Interface()) {
			return fmt.Sprintf("%s is %v, want %v", path, a, b)
		}
	default:
		if !a.Equal(b) {
			return fmt.Sprintf("%s is %v, want %v", path, a, b)
		}
	}
	return ""
}

// strange are names that a caller may choose. NUL is not among them: it is
// refused at the edge, since a database's text cannot hold it.
func strange() []string {
	return []string{
		"a", "A", "a ", " a", "a/b", "a/b/c", "a_b", "a:b", "{a}", "{}", "\"", "'", "''", "\\", "\\x00", "%s", "$1", "NULL",
		"a,b", "(a)", "a\tb\nc\r", "\x01\x7f", "é", "e\u0301", "日本語", "🎟", "\u200b", "\ufeffa", strings.Repeat("x", 256),
		strings.Repeat("語", 85) + "x",
	}
}

func testNames(t *testing.T, h Harness) {
	names := strange()
	want := map[string]*allocation.State{}
	for i, name := range names {
		s := filled(name)
		for k := range s.Leases {
			s.Leases[k].Region = name
			s.Leases[k].Incarnation = lease.Incarnation(names[(i+k)%len(names)])
		}
		s.Regions = []allocation.Region{{Name: name}}
		s.Locals = []allocation.Local{{Region: name, Source: name, Total: 1}}
		s.Budget.Match = map[string]string{name: name}
		want[name] = s
		apply(t, h.Store, s)
	}
	for _, name := range names {
		expectState(t, load(t, h.Store, name), want[name])
	}
	sorted := slices.Sorted(slices.Values(names))
	view, _, err := h.Store.View(ctx, "", len(names))
	if err != nil || len(view) != len(names) {
		t.Fatalf("View: %d states, %v", len(view), err)
	}
	for i := range view {
		if view[i].Budget.Name != sorted[i] {
			t.Errorf("state %d of the view is %q, want %q: by bytes", i, view[i].Budget.Name, sorted[i])
		}
	}
}

// Rows that a step adds, removes, or gives another key are stored as it left
// them.
func testRows(t *testing.T, h Harness) {
	s := filled("rows")
	apply(t, h.Store, s)
	change := func(step func(s *allocation.State)) {
		t.Helper()
		var want *allocation.State
		err := h.Store.Update(ctx, []string{"rows"}, func(_ allocation.Now, states []*allocation.State) error {
			step(states[0])
			c := *states[0]
			c.Pools, c.Leases = slices.Clone(c.Pools), slices.Clone(c.Leases)
			c.Regions, c.Locals = slices.Clone(c.Regions), slices.Clone(c.Locals)
			want = &c
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		expectState(t, load(t, h.Store, "rows"), want)
	}
	change(func(s *allocation.State) {
		s.Pools[1].Start++
		s.Leases[1].Window++
	})
	change(func(s *allocation.State) {
		s.Leases = slices.Insert(s.Leases, 1, s.Leases[0])
		s.Leases[1].Incarnation += "x"
		s.Regions = append(s.Regions, allocation.Region{Name: "z"})
		s.Locals = append(s.Locals, allocation.Local{Region: "z", Source: "z"})
	})
	change(func(s *allocation.State) {
		s.Leases, s.Regions, s.Locals = s.Leases[1:2], s.Regions[1:], s.Locals[:1]
		s.Pools = s.Pools[:1]
		s.Leases[0].Window = s.Pools[0].Start
	})
	change(func(s *allocation.State) { s.Pools, s.Leases, s.Regions, s.Locals = nil, nil, nil, nil })
}
