package agent

// backlog is the effects that wait for a worker, by rank: the higher ones go
// first, in the order in which they came, but each fairShare-th time a lower one
// does, so that none waits for ever. The zero value is empty.
type backlog struct {
	waiting [ranks][]Effect
	taken   int
}

// fairShare is how many effects go for one of which a lower rank has the turn.
const fairShare = 4

// next is the effect that goes next, nil if none waits.
func (b *backlog) next() Effect {
	if r, ok := b.turn(); ok {
		return b.waiting[r][0]
	}
	return nil
}

// pop takes the next one out.
func (b *backlog) pop() {
	r, ok := b.turn()
	if !ok {
		return
	}
	b.waiting[r][0] = nil
	b.waiting[r] = b.waiting[r][1:]
	b.taken++
}

func (b *backlog) push(f Effect) {
	r := rankOf(f)
	b.waiting[r] = append(b.waiting[r], f)
}

// turn is the rank whose turn it is.
func (b *backlog) turn() (rank Rank, ok bool) {
	for r := range ranks {
		if len(b.waiting[r]) == 0 {
			continue
		}
		if rank, ok = r, true; b.taken%fairShare == fairShare-1 {
			break
		}
	}
	return rank, ok
}
