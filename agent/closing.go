package agent

import (
	"maps"
	"slices"

	"github.com/ration-dev/ration/lease"
)

// onStopping begins the end: the process leaves the region, and only the last
// one to leave closes its leases.
func (k *Keeper) onStopping() {
	if k.stopping {
		return
	}
	k.stopping = true
	k.stopAt = k.now + stopFor
	k.do(Leave{})
}

func (k *Keeper) onLeft(e Left) {
	if !k.stopping {
		return
	}
	if e.Err != nil || e.Processes > 0 {
		k.stop()
		return
	}
	k.last, k.inherits = true, true
	k.do(ListInUse{})
}

// closeAll starts the last round of every budget that may hold a lease here.
func (k *Keeper) closeAll() {
	k.closing = true
	for _, t := range k.listed {
		if t.planned {
			k.ward(t.Name)
		}
	}
	inOrder := func(a, b *ward) int { return byName(a.budget, b.budget) }
	for _, w := range slices.SortedFunc(maps.Values(k.wards), inOrder) { // so that runs repeat
		if !k.standing(w) && w.usedUntil == 0 && !w.anyAlive() {
			w.ended = true
			continue
		}
		k.toClose++
		if w.phase == resting {
			k.schedule(w, max(k.now, 1))
		}
	}
	k.stopIfDone()
}

// planClose closes one lease after another, then reports them all, then
// retires the ward once the ledger has answered.
func (k *Keeper) planClose(w *ward) {
	for kind := lease.Reserve; kind <= lease.Lump; kind++ {
		if l := w.lease(kind); w.alive(kind) && !l.Closed && !l.Ended {
			k.close(w, kind)
			return
		}
	}
	if w.failures <= 5 && (w.localUnsaid() || k.leaseUnreported(w)) {
		k.gather(w)
		return
	}
	k.retire(w)
}

// leaseUnreported reports whether the ledger has not heard a closed lease's
// last totals.
func (k *Keeper) leaseUnreported(w *ward) bool {
	for kind := lease.Reserve; kind <= lease.Lump; kind++ {
		l := w.lease(kind)
		if l.Incarnation != "" && !l.Ended && (l.Closed || w.dead(kind)) && !reported(l) {
			return true
		}
	}
	return false
}

func (k *Keeper) retire(w *ward) {
	k.sleep(w, 0)
	if w.ended {
		return
	}
	w.ended = true
	k.toClose--
	k.stopIfDone()
}

func (k *Keeper) stopIfDone() {
	if k.toClose <= 0 {
		k.stop()
	}
}

// stop says that nothing more is to come.
func (k *Keeper) stop() {
	if k.stopped {
		return
	}
	k.stopped = true
	if k.leader {
		k.do(Unlead{})
	}
	k.do(Stopped{})
}
