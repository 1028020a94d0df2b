package policy

// Pair is one descriptor of a request.
type Pair struct{ Key, Value string }

// Index finds the budgets that a request must satisfy. It is immutable and
// safe for concurrent use; build a new one when the budgets change.
type Index struct {
	budgets []Budget
	names   map[string]int
	// first lists budgets under the pair of theirs that fewest others share,
	// so that one lookup per descriptor finds every candidate.
	first map[Pair][]int
}

// NewIndex indexes budgets; of two with one name the later counts. Deleted
// budgets are found like others: they admit nothing until they are gone.
func NewIndex(budgets []Budget) *Index {
	x := &Index{budgets: budgets, names: make(map[string]int, len(budgets)), first: map[Pair][]int{}}
	shared := map[Pair]int{}
	for i, b := range budgets {
		x.names[b.Name] = i
		for k, v := range b.Match {
			shared[Pair{k, v}]++
		}
	}
	for i, b := range budgets {
		if len(b.Match) == 0 || x.names[b.Name] != i {
			continue
		}
		rarest := rarestPair(b.Match, shared)
		x.first[rarest] = append(x.first[rarest], i)
	}
	return x
}

func rarestPair(match map[string]string, shared map[Pair]int) Pair {
	var best Pair
	for _, k := range sortedKeys(match) {
		p := Pair{k, match[k]}
		if best.Key == "" || shared[p] < shared[best] {
			best = p
		}
	}
	return best
}

// Len returns how many budgets are indexed, and At the i-th of them.
func (x *Index) Len() int { return len(x.budgets) }

// At returns the i-th budget, 0 <= i < Len.
func (x *Index) At(i int) *Budget { return &x.budgets[i] }

// Named returns the position of a budget by its name.
func (x *Index) Named(name string) (int, bool) {
	i, ok := x.names[name]
	return i, ok
}

// Match appends to dst the position of every budget all of whose descriptors
// are among pairs, each once, in the order of pairs. Keys in pairs are unique.
// It allocates only if dst is too short.
func (x *Index) Match(dst []int, pairs []Pair) []int {
	for _, p := range pairs {
		for _, i := range x.first[p] {
			if matches(x.budgets[i].Match, pairs) {
				dst = append(dst, i)
			}
		}
	}
	return dst
}

func matches(match map[string]string, pairs []Pair) bool {
	if len(match) > len(pairs) {
		return false
	}
	found := 0
	for _, p := range pairs {
		want, ok := match[p.Key]
		if !ok {
			continue
		}
		if want != p.Value {
			return false
		}
		found++
	}
	return found == len(match)
}
