package agent

// backlog is the effects that wait for a worker, by rank: the higher ones go
// first, in the order in which they came, but each fairShare-th time one of the
// lower ranks has its turn, so that none waits for ever. The zero value is empty.
type backlog struct {
	waiting [ranks][]Effect
	taken   int
}

// fairShare is how many effects go for one that need not be of the highest rank.
const fairShare = 3

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
	if b.taken%fairShare == fairShare-1 {
		lower := Rank(b.taken/fairShare) % (ranks - 1)
		if len(b.waiting[lower]) > 0 {
			return lower, true
		}
	}
	for r := range ranks {
		if len(b.waiting[r]) > 0 {
			rank, ok = r, true
		}
	}
	return rank, ok
}
