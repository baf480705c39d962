package certificate

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// makePool is a pool of tasks with times and, of each, those that it follows.
func makePool(units int, nanos []int64, before ...[]int32) *pool {
	p := &pool{units: units, nanos: nanos, before: make([][]int32, len(nanos)), after: make([][]int32, len(nanos))}
	for t, list := range before {
		p.before[t] = list
		for _, u := range list {
			p.after[u] = append(p.after[u], int32(t))
		}
	}
	return p
}

func TestPools(t *testing.T) {
	for _, c := range []struct {
		name string
		pool *pool
		want int64
	}{
		{"nothing", makePool(2, nil), 0},
		{"fewer tasks than units", makePool(3, []int64{5, 7}), 7},
		// 3 + 4 + 5 + 6 = 18 over two units.
		{"area", makePool(2, []int64{3, 4, 5, 6}), 9},
		{"chain", makePool(4, []int64{3, 4, 5}, nil, []int32{0}, []int32{1}), 12},
		// Of 1·3 + 1 tasks one unit runs two.
		{"packing", makePool(3, []int64{5, 5, 5, 5}), 10},
		// Of 2·2 + 1 tasks one unit runs three: no less than the three least of the five longest.
		{"packing of unequal tasks", makePool(2, []int64{9, 8, 7, 7, 7, 1}), 21},
		// One task, then four of 5 on three units, then one: 2 + 10 + 3.
		{"packing between two tasks", makePool(3, []int64{2, 5, 5, 5, 5, 3}, nil, []int32{0}, []int32{0}, []int32{0}, []int32{0}, []int32{1, 2, 3, 4}), 15},
		// Two units, one of which waits while the first task runs: (0 + 4 + 4 + 5·4)/2, since four of the five that
		// follow keep both units busy from 4 to 12 and the fifth ends at 16.
		{"wait for the first", makePool(2, []int64{4, 4, 4, 4, 4, 4}, nil, []int32{0}, []int32{0}, []int32{0}, []int32{0}, []int32{0}), 16},
	} {
		if got := c.pool.least(t.Context()); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// shortest is the least makespan of a pool over all orders: in each, every task starts as soon as those before it
// have ended and a unit is free.
func (p *pool) shortest(done uint, ends, free []int64, last int64) int64 {
	if done == 1<<len(p.nanos)-1 {
		return last
	}
	best := int64(1 << 60)
	for t := range p.nanos {
		if done&(1<<t) != 0 || slices.ContainsFunc(p.before[t], func(u int32) bool { return done&(1<<u) == 0 }) {
			continue
		}
		start := slices.Min(free)
		unit := slices.Index(free, start)
		for _, u := range p.before[t] {
			start = max(start, ends[u])
		}
		was := free[unit]
		free[unit], ends[t] = start+p.nanos[t], start+p.nanos[t]
		best = min(best, p.shortest(done|1<<t, ends, free, max(last, ends[t])))
		free[unit] = was
	}
	return best
}

// No bound is above the shortest of all schedules, and most are equal to it.
func TestPoolsBelowShortest(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	equal := 0
	const pools = 1500
	for n := range pools {
		tasks := 2 + r.IntN(6)
		nanos, before := make([]int64, tasks), make([][]int32, tasks)
		for i := range nanos {
			nanos[i] = int64(r.IntN(9))
			for u := range i {
				if r.IntN(4) == 0 {
					before[i] = append(before[i], int32(u))
				}
			}
		}
		p := makePool(1+r.IntN(3), nanos, before...)
		least, shortest := p.least(t.Context()), p.shortest(0, make([]int64, tasks), make([]int64, p.units), 0)
		if least > shortest {
			t.Errorf("pool %d: at least %d, and a schedule takes %d: %+v", n, least, shortest, p)
		}
		if least == shortest {
			equal++
		}
	}
	if equal < pools*9/10 {
		t.Errorf("%d of %d bounds are those of the shortest schedule", equal, pools)
	}
}
