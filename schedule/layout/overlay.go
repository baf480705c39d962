package layout

import (
	"cmp"
	"math"
	"slices"

	"dahl/dag"
)

// overlay places storages in fewer bytes than their sum. Storages that stay all the time come
// first, then the largest. Each takes the offset at which it costs the others least; ties go to
// the lowest offset. Storages whose home is the memory are there together before the first step.
func (l *Layout) overlay(g *dag.Graph, storages []dag.BufferID, room int64, memory string) error {
	orders, err := ordersOf([]*Graph{inOneMemory(g)})
	if err != nil {
		return err
	}
	written := g.WrittenStorages()
	stays := func(b dag.BufferID) bool { return !written[b] && g.Buffers[b].Home == "" }
	slices.SortFunc(storages, func(a, b dag.BufferID) int {
		x, y := &g.Buffers[a], &g.Buffers[b]
		if stays(a) != stays(b) {
			return map[bool]int{true: -1, false: 1}[stays(a)]
		}
		return cmp.Or(cmp.Compare(y.Bytes(), x.Bytes()), cmp.Compare(x.Name, y.Name))
	})
	lives := newLifetimes(orders[0], storages, stays)
	together := usedTogether(g)
	var taken []overlaid
	for k, b := range storages {
		for i := range taken {
			t := &taken[i]
			switch other := storages[i]; {
			case stays(b) || stays(other) || together[b][other] || g.Buffers[b].Home == memory && g.Buffers[other].Home == memory:
				t.price = forbidden
			case lives != nil && lives.ordered(k, i):
				t.price = inTurn
			default:
				t.price = contested
			}
		}
		size := Align(g.Buffers[b].Bytes())
		l.Offset[b] = cheapest(taken, size, room)
		taken = append(taken, overlaid{offset: l.Offset[b], bytes: size})
		if l.Offset[b] == Elsewhere {
			taken[k] = overlaid{} // it takes no bytes and is in nobody's way
		}
	}
	return nil
}

// usedTogether tells for each storage which others a task names with it.
func usedTogether(g *dag.Graph) []map[dag.BufferID]bool {
	with := make([]map[dag.BufferID]bool, len(g.Buffers))
	for b := range with {
		with[b] = map[dag.BufferID]bool{}
	}
	for t := range g.Tasks {
		for _, x := range g.Tasks[t].Accesses {
			for _, y := range g.Tasks[t].Accesses {
				with[g.Storage(x.Buffer)][g.Storage(y.Buffer)] = true
			}
		}
	}
	return with
}

// overlaid is the bytes of a placed storage, and the price of sharing them.
type overlaid struct {
	offset, bytes int64
	price         price
}

// price is the cost of each byte that a storage shares with another.
type price int64

const (
	forbidden price = 0  // both storages are needed at once
	inTurn    price = 1  // different steps want them, and overlap less if they share
	contested price = 16 // one has to leave for the other; this factor is a guess
)

// cheapest is the offset within room at which size bytes cost least, and the lowest such offset;
// Elsewhere if there is none. The cost changes its slope only where the bytes begin or end to
// meet others, so one of these offsets is cheapest.
func cheapest(taken []overlaid, size, room int64) int64 {
	candidates := []int64{0, room - size}
	for _, t := range taken {
		candidates = append(candidates, t.offset+t.bytes, t.offset-size)
	}
	slices.Sort(candidates)
	cost := newCoverage(taken, func(p price) int64 { return int64(p) })
	barred := newCoverage(taken, func(p price) int64 {
		if p == forbidden {
			return 1
		}
		return 0
	})
	best, least := Elsewhere, int64(math.MaxInt64)
	for _, at := range slices.Compact(candidates) {
		if at < 0 || at+size > room || barred.until(at+size) > barred.until(at) {
			continue
		}
		if c := cost.until(at+size) - cost.until(at); c < least {
			best, least = at, c
		}
	}
	return best
}

// coverage is a weighted sum over bytes as a function of their end. It is a line from each bend
// to the next.
type coverage []bend

type bend struct{ at, sum, slope int64 }

func newCoverage(taken []overlaid, weigh func(price) int64) coverage {
	c := coverage{{at: math.MinInt64 / 2}}
	for _, t := range taken {
		if w := weigh(t.price); w > 0 && t.bytes > 0 {
			c = append(c, bend{at: t.offset, slope: w}, bend{at: t.offset + t.bytes, slope: -w})
		}
	}
	slices.SortFunc(c, func(a, b bend) int { return cmp.Compare(a.at, b.at) })
	for i := 1; i < len(c); i++ {
		c[i].sum = c[i-1].sum + c[i-1].slope*(c[i].at-c[i-1].at)
		c[i].slope += c[i-1].slope
	}
	return c
}

// until is the weight of all bytes before one.
func (c coverage) until(at int64) int64 {
	after, _ := slices.BinarySearchFunc(c, at, func(b bend, at int64) int {
		if b.at <= at {
			return -1
		}
		return 1
	})
	b := c[after-1]
	return b.sum + b.slope*(at-b.at)
}
