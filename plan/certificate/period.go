package certificate

import (
	"fmt"
	"math"
	"slices"
)

// Whether a steady step can take no longer than some length. In a plan with steps T apart in the mean, every cycle of orders,
// including those between tasks of a unit, takes at most T per step. So the times of the orders alone, with the
// least time of each task, allow a schedule of the same plan that repeats exactly every T, or every length above T. A
// period is the question whether there is one on equal units.
//
// Some tasks are the reference: 0 is when the last of them ends. The start of each task lies in a window, which
// [period.refuted] narrows until one is empty, an interval has more work than its units have time, or nothing changes:
//
//   - a successor, some steps later, starts no sooner than the end of the task, less a length for each step.
//     One that follows all of the reference starts no sooner than the least of the longest ways from any of them
//   - a unit goes through its tasks step by step. At a moment when every unit surely runs some task, tasks of later steps start
//     after one of these, and tasks of earlier steps end before one
//   - energetic reasoning: in an interval that is repeated every length, a task runs at least as long as where in its
//     window it does least. That adds up to no more than the units have. Where a task would run
//     longer than what the others leave, it does not start
//
// An example. Four tasks of 6 ns on four units follow one of 1 ns, which follows them a step later. Another of 5 ns
// runs at any time. By work a step takes (4·6 + 1 + 5)/4 = 7.5 ns, and by its longest cycle 7. With a length of 8 the four start
// at 0 or 1 after the one has ended, and run from 1 to 6. From there to 9 are 3 ns. So the step takes more than 8 ns. With 10 it has
// 5 ns of room.
//
// Sources: Erschler, Lopez, Thuriot, Raisonnement temporel sous contraintes de ressource, 1991; Baptiste, Le Pape, Nuijten, Satisfiability
// tests and time-bound adjustments for cumulative scheduling problems, 1999; Rau, Iterative modulo scheduling, 1996; Hanen, Munier, A study of the cyclic scheduling problem on
// parallel processors, 1995.
type period struct {
	units, length int64
	nanos         []int64
	orders        []periodOrder
	first, last   []int64 // by task: its window
	groups        []periodGroup
	of            []int32 // by task: its group
	looks         int     // of energetic reasoning that are left
}

// periodOrder says how far two tasks are apart at least. It is negative for a task of a later step.
type periodOrder struct {
	from, to int32
	distance int64
}

// periodGroup is tasks with equal times and windows.
type periodGroup struct {
	nanos, first, last, tasks int64
	anywhere                  bool  // the window is no narrower than the length
	at, end                   int64 // window, from the first start within a length from 0 on
}

const (
	// unbounded is later than any start. Sums of two are still numbers.
	unbounded = math.MaxInt64 / 4
	// mostLength is the longest length that is asked for, about 13 days: times thousands of units it is still a number.
	mostLength = 1 << 50
	// looksAtOnce is how many looks of energetic reasoning take the time of another.
	looksAtOnce = 20
	// mostNarrowings is how often all windows are narrowed.
	mostNarrowings = 100
)

// refutes reports whether no plan has a step that takes no longer than a length, as seen from some tasks.
func (m *Model) refutes(around []int32, length int64) bool {
	key := fmt.Sprint(around, length)
	refuted, ok := m.periods[key]
	if !ok {
		refuted = len(m.Tasks) <= mostPooled && length > 0 && length <= mostLength && m.newPeriod(around, length).refuted()
		m.periods[key] = refuted
	}
	return refuted
}

// newPeriod makes the period of all tasks on all units.
func (m *Model) newPeriod(around []int32, length int64) *period {
	n := len(m.Tasks)
	p := &period{units: int64(m.units()), length: length, nanos: make([]int64, n), of: make([]int32, n), looks: mostLooks}
	for t := range n {
		p.nanos[t] = m.LeastNanos(int32(t))
	}
	for t := range n {
		for back := range m.after {
			for _, u := range m.after[back][t] {
				p.orders = append(p.orders, periodOrder{int32(t), u, p.nanos[t] - int64(back)*length})
			}
		}
	}
	p.first, p.last = slices.Repeat([]int64{-unbounded}, n), slices.Repeat([]int64{unbounded}, n)
	for _, t := range around {
		p.last[t] = -p.nanos[t]
	}
	for i, way := range m.ways(around, p.nanos) {
		if t := i % n; way >= 0 {
			p.first[t] = max(p.first[t], way-int64(i/n)*length)
		}
	}
	return p
}

// ways are, by steps later and task, the least of the longest ways to it from the ends of some tasks; -1 means it does not
// follow all of them.
func (m *Model) ways(from []int32, nanos []int64) []int64 {
	n := len(m.Tasks)
	least, way := slices.Repeat([]int64{unbounded}, 2*n), make([]int64, 2*n)
	for _, start := range from {
		for i := range way {
			way[i] = -1
			t, step := i%n, i/n
			for back := range step + 1 {
				for _, u := range m.before[back][t] {
					if at := (step-back)*n + int(u); at == int(start) {
						way[i] = max(way[i], 0)
					} else if way[at] >= 0 {
						way[i] = max(way[i], way[at]+nanos[u])
					}
				}
			}
			least[i] = min(least[i], way[i])
		}
	}
	return least
}

// refuted reports whether there is no schedule.
func (p *period) refuted() bool {
	if slices.Max(p.nanos) > p.length {
		return true
	}
	for range mostNarrowings {
		if !p.follow() {
			return true
		}
		p.group()
		if p.cut() {
			continue
		}
		narrowed, fits := p.energetic()
		if !fits {
			return true
		}
		if !narrowed {
			return false
		}
		for t, g := range p.of {
			if g := &p.groups[g]; !g.anywhere {
				p.first[t], p.last[t] = g.first, g.last
			}
		}
	}
	return false
}

// follow narrows windows by the orders; false means they have a cycle that takes too long, or no window is left.
func (p *period) follow() bool {
	for range len(p.nanos) + 1 {
		narrowed := false
		for _, o := range p.orders {
			if at := p.first[o.from]; at > -unbounded && at+o.distance > p.first[o.to] {
				p.first[o.to], narrowed = at+o.distance, true
			}
		}
		for _, o := range slices.Backward(p.orders) {
			if at := p.last[o.to]; at < unbounded && at-o.distance < p.last[o.from] {
				p.last[o.from], narrowed = at-o.distance, true
			}
		}
		for t := range p.nanos {
			if p.first[t] > p.last[t] {
				return false
			}
		}
		if !narrowed {
			return true
		}
	}
	return false
}

// group puts tasks together that are alike.
func (p *period) group() {
	p.groups = p.groups[:0]
	known := map[[3]int64]int32{}
	for t, nanos := range p.nanos {
		g := periodGroup{nanos: nanos, first: p.first[t], last: p.last[t]}
		if g.anywhere = g.last-g.first >= p.length; g.anywhere {
			g.first, g.last = 0, p.length
		}
		key := [3]int64{nanos, g.first, g.last}
		at, ok := known[key]
		if !ok {
			at = int32(len(p.groups))
			known[key] = at
			g.place(p.length)
			p.groups = append(p.groups, g)
		}
		p.groups[at].tasks++
		p.of[t] = at
	}
}

func (g *periodGroup) place(length int64) {
	g.at = g.first % length
	if g.at < 0 {
		g.at += length
	}
	g.end = g.at + g.last - g.first
}

// cut narrows windows by moments at which every unit surely runs some task: tasks of later steps run after such a moment, tasks
// of earlier steps before it. It reports whether it has.
func (p *period) cut() (narrowed bool) {
	for i := range p.groups {
		moment, running := p.groups[i].last, int64(0)
		before, after := int64(math.MaxInt64), int64(math.MinInt64) // the first end and the last start of those that run
		least, most := int64(math.MaxInt64), int64(math.MinInt64)   // when their steps begin
		for k := range p.groups {
			g := &p.groups[k]
			since := (moment - g.last) % p.length
			if since < 0 {
				since += p.length
			}
			if end := g.first + g.nanos; !g.anywhere && since < end-g.last {
				step := moment - g.last - since
				running += g.tasks
				before, after = min(before, end+step), max(after, g.last+step)
				least, most = min(least, step), max(most, step)
			}
		}
		if running != p.units {
			continue
		}
		for t, nanos := range p.nanos {
			if first := before - most - p.length; first > p.first[t] {
				p.first[t], narrowed = first, true
			}
			if last := after - nanos - least + p.length; last < p.last[t] {
				p.last[t], narrowed = last, true
			}
		}
	}
	return narrowed
}

// energetic narrows windows by energetic reasoning, and reports whether it has, and whether all intervals have room.
func (p *period) energetic() (narrowed, fits bool) {
	begins, ends, longest := p.intervals()
	if p.looks -= len(begins) * len(ends) * len(p.groups) / looksAtOnce; p.looks <= 0 {
		return false, true
	}
	least := make([]int64, len(p.groups))
	for _, begin := range begins {
		for _, end := range ends {
			long := end - begin
			if long <= 0 {
				long += p.length
			}
			room := p.units * long
			for i := range p.groups {
				least[i] = p.least(&p.groups[i], begin, long)
				room -= p.groups[i].tasks * least[i]
			}
			if room < 0 {
				return narrowed, false
			}
			if room >= longest {
				continue
			}
			for i := range p.groups {
				g := &p.groups[i]
				if left := room + least[i]; !g.anywhere && left < min(g.nanos, long) && p.narrow(g, begin, long, left) {
					narrowed = true
					if g.first > g.last {
						return narrowed, false
					}
				}
			}
		}
	}
	return narrowed, true
}

// intervals are where some begin and end that matter, and the longest time of a task.
func (p *period) intervals() (begins, ends []int64, longest int64) {
	for i := range p.groups {
		g := &p.groups[i]
		longest = max(longest, g.nanos)
		if !g.anywhere {
			last, done := g.end%p.length, (g.at+g.nanos)%p.length
			begins = append(begins, g.at, last, done)
			ends = append(ends, (g.end+g.nanos)%p.length, last, done)
		}
	}
	for _, list := range []*[]int64{&begins, &ends} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return begins, ends, longest
}

// A task that starts so long after the beginning of an interval runs least in it between two starts, low and high: before the
// first and after the second, as much more as it starts sooner or later.

// least is how long a task runs at least in an interval.
func (p *period) least(g *periodGroup, begin, long int64) int64 {
	low, high := min(long, p.length-g.nanos), max(long, p.length-g.nanos)
	at := g.at - begin
	if at < 0 {
		at += p.length
	}
	end := at + g.end - g.at
	least := max(0, long-(p.length-g.nanos))
	if g.anywhere || at <= high && end >= low || end >= low+p.length {
		return least
	}
	if end >= p.length {
		end -= p.length
	}
	return min(p.within(at, g.nanos, long), p.within(end, g.nanos, long))
}

// within is how long a task runs in an interval if it starts so long after its beginning.
func (p *period) within(at, nanos, long int64) int64 {
	return max(0, min(at+nanos, long)-at) + max(0, min(at+nanos-p.length, long))
}

// narrow cuts starts from both ends of a window. From such a start a task would run longer in an interval than the others leave room for.
func (p *period) narrow(g *periodGroup, begin, long, left int64) bool {
	low, high := min(long, p.length-g.nanos), max(long, p.length-g.nanos)
	left -= max(0, long-(p.length-g.nanos))
	from := begin + high + left
	width := p.length + low - left - (high + left)
	before := g.last - g.first
	if at := (g.at - from + 2*p.length) % p.length; at > 0 && at < width {
		g.first += width - at
	}
	if at := (g.end - from + 2*p.length) % p.length; at > 0 && at < width {
		g.last -= at
	}
	if g.last-g.first == before {
		return false
	}
	g.place(p.length)
	return true
}
