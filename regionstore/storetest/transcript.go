package storetest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/regionstore"
)

// Op is one line of a transcript: the store's clock, and the one step that is
// set.
type Op struct {
	At lease.Time

	Open    *regionstore.OpenRequest    `json:",omitempty"`
	Begin   *regionstore.BeginRequest   `json:",omitempty"`
	Install *regionstore.InstallRequest `json:",omitempty"`
	Take    *regionstore.TakeRequest    `json:",omitempty"`
	Refill  []regionstore.Take          `json:",omitempty"`
	Settle  []regionstore.Settle        `json:",omitempty"`
	Return  *regionstore.ReturnRequest  `json:",omitempty"`
	Close   *regionstore.CloseRequest   `json:",omitempty"`
	Local   *regionstore.LocalRequest   `json:",omitempty"`
	Read    *ReadRequest                `json:",omitempty"`
	Name    *NameRequest                `json:",omitempty"`
	Fault   *Fault                      `json:",omitempty"`
}

// ReadRequest is the arguments of Store.Read.
type ReadRequest struct {
	Budgets []string
	Now     []regionstore.Now
}

// NameRequest is a call of Touch, InUse, Disused, Lead, Unlead, Join or Leave.
type NameRequest struct {
	Call    string
	Name    string
	Budgets []string
	TTL     time.Duration
}

// Fault pulls a lever of the Subject: Restart, Save, Restore or LoseRow.
type Fault struct{ Lever, Replid, Budget string }

func (op Op) String() string {
	b, err := json.Marshal(op)
	if err != nil {
		return fmt.Sprintf("%+v", op.At)
	}
	return string(b)
}

// Apply runs the op and returns the store's reply, or its error. Where a
// reply's order is free it is sorted.
func (op Op) Apply(s *Subject) any {
	ctx := context.Background()
	s.SetTime(op.At)
	switch {
	case op.Open != nil:
		return answer(s.Store.Open(ctx, *op.Open))
	case op.Begin != nil:
		return answer(s.Store.Begin(ctx, *op.Begin))
	case op.Install != nil:
		return answer(s.Store.Install(ctx, *op.Install))
	case op.Take != nil:
		return answer(s.Store.Take(ctx, *op.Take))
	case op.Refill != nil:
		return answer(s.Store.Refill(ctx, op.Refill))
	case op.Settle != nil:
		return answer(s.Store.Settle(ctx, op.Settle))
	case op.Return != nil:
		return answer(s.Store.Return(ctx, *op.Return))
	case op.Close != nil:
		return answer(s.Store.Close(ctx, *op.Close))
	case op.Local != nil:
		return answer(s.Store.TakeLocal(ctx, *op.Local))
	case op.Read != nil:
		return answer(s.Store.Read(ctx, op.Read.Budgets, op.Read.Now))
	case op.Name != nil:
		return op.Name.apply(ctx, s.Store)
	case op.Fault != nil:
		op.Fault.apply(s)
	}
	return nil
}

func answer[T any](v T, err error) any {
	if err != nil {
		return err
	}
	return v
}

func (n *NameRequest) apply(ctx context.Context, s regionstore.Store) any {
	switch n.Call {
	case "Touch":
		return s.Touch(ctx, n.Budgets, n.TTL)
	case "InUse":
		names, err := s.InUse(ctx)
		slices.Sort(names)
		return answer(names, err)
	case "Disused":
		names, err := s.Disused(ctx, n.TTL)
		slices.Sort(names)
		return answer(names, err)
	case "Lead":
		return answer(s.Lead(ctx, n.Name, n.TTL))
	case "Unlead":
		return s.Unlead(ctx, n.Name)
	case "Join":
		return answer(s.Join(ctx, n.Name, n.TTL))
	case "Leave":
		return answer(s.Leave(ctx, n.Name))
	}
	return fmt.Errorf("no such call: %q", n.Call)
}

func (f *Fault) apply(s *Subject) {
	switch f.Lever {
	case "Restart":
		s.Restart(f.Replid)
	case "Save":
		s.Save()
	case "Restore":
		s.Restore(f.Replid)
	case "LoseRow":
		s.LoseRow(f.Budget)
	}
}

// Compare applies ops to two subjects and describes the first reply in which
// they differ; "" for none. Replies carry whole rows, so equal replies mean
// equal rows. Nil and empty slices are the same reply.
func Compare(ops []Op, a, b *Subject) string {
	for i, op := range ops {
		x, y := canonical(op.Apply(a)), canonical(op.Apply(b))
		if x != y {
			return fmt.Sprintf("op %d: %v\n first: %s\nsecond: %s", i, op, x, y)
		}
	}
	return ""
}

func canonical(reply any) string {
	if err, ok := reply.(error); ok {
		return "error: " + err.Error()
	}
	b, err := json.Marshal(reply)
	if err != nil {
		return "unmarshalable: " + err.Error()
	}
	return string(canonicalNulls(b))
}

// canonicalNulls makes empty lists what nil ones are.
func canonicalNulls(b []byte) []byte {
	return []byte(emptyLists.Replace(string(b)))
}

var emptyLists = strings.NewReplacer("[]", "null")
