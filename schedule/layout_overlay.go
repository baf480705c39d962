package schedule

import (
	"cmp"
	"math"
	"slices"

	"dahl/dag"
)

// overlay places storages in fewer bytes than all of them have: what is there all the
// time first, then the largest, each where it takes the least from others that may be
// wanted at the same time; ties go to the lowest offset. Those at home in the memory are
// there at once before the first step.
func (l *Layout) overlay(g *dag.Graph, storages []dag.BufferID, room int64, memory string) error {
	orders, err := newOrders(tenantsOf(g), nil)
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
	lives := newLifetimes(orders, storages, stays)
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
			taken[k] = overlaid{} // of no bytes, in nobody's way
		}
	}
	return nil
}

// usedTogether tells for each storage which others some task names with it.
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

// overlaid is bytes that have a storage, and what it costs to share them.
type overlaid struct {
	offset, bytes int64
	price         price
}

// price is what one byte costs that a storage shares with another.
type price int64

const (
	forbidden price = 0  // they are needed at once
	inTurn    price = 1  // not wanted at once but by different steps, which overlap less then
	contested price = 16 // one has to be moved away for the other; how much worse that is, is a guess
)

// cheapest is the offset at which size bytes within room cost least, and the lowest of
// these; Elsewhere: there is none. The cost changes its slope only where the bytes begin
// or end to meet others, so that one of these offsets is cheapest.
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

// coverage is a sum over bytes of what each of them weighs, as a function of where the
// bytes end: from each bend to the next it is a line.
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

// until is what all bytes before one weigh.
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
