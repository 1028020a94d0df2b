package memory

import (
	"container/heap"
	"maps"
	"slices"
	"strings"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
	"github.com/ration-dev/ration/regionstore"
)

// answers keeps the first answer to each request id for its time. Ids of
// different tenants are different.
type answers struct {
	byID map[answerID]answer
	// order has each answer's id once, soonest to expire first.
	order expiries
}

type answerID struct{ tenant, request string }

type answer struct {
	content string
	until   lease.Time
	reply   regionstore.TakeReply
}

func newAnswers() answers { return answers{byID: make(map[answerID]answer)} }

func idOf(req *regionstore.TakeRequest) answerID {
	return answerID{tenant: policy.Tenant(req.Takes[0].Budget), request: req.RequestID}
}

func (a *answers) find(req *regionstore.TakeRequest, now lease.Time) (answer, bool) {
	if req.RequestID == "" || len(req.Takes) == 0 {
		return answer{}, false
	}
	found, ok := a.byID[idOf(req)]
	return found, ok && now < found.until
}

func (a *answers) keep(req *regionstore.TakeRequest, reply regionstore.TakeReply, now lease.Time) {
	id, until := idOf(req), now.Add(req.KeepAnswer)
	id.request = strings.Clone(id.request) // it may be a part of something large
	a.byID[id] = answer{content: req.Content, until: until, reply: reply}
	heap.Push(&a.order, expiry{until: until, id: id})
}

// expire forgets what is over.
func (a *answers) expire(now lease.Time) {
	for len(a.order) > 0 && now >= a.order[0].until {
		e := heap.Pop(&a.order).(expiry)
		if found, ok := a.byID[e.id]; ok && now >= found.until {
			delete(a.byID, e.id)
		}
	}
}

func (a *answers) clone() answers {
	return answers{byID: maps.Clone(a.byID), order: slices.Clone(a.order)}
}

type expiry struct {
	until lease.Time
	id    answerID
}

// expiries is a heap by until.
type expiries []expiry

func (h expiries) Len() int           { return len(h) }
func (h expiries) Less(i, j int) bool { return h[i].until < h[j].until }
func (h expiries) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *expiries) Push(x any)        { *h = append(*h, x.(expiry)) }
func (h *expiries) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
