package exact

import (
	"math"
	"slices"

	"dahl/plan/problem"
	"dahl/platform"
)

// dominance drops parts of plans that are no better than other parts with the same tasks, whatever follows.
//
// Theory. Let A and B be parts of plans with the same tasks. Whatever can follow B can follow A: the tasks
// left on the same workers, in the same order. In the model a task starts when its worker is free, its predecessors have ended
// and its data have arrived. It takes the same after A as after B. Let δ be such that each of those times in A is at most δ
// after the one in B. By induction along the order in which tasks follow, every task then starts no more than δ later
// after A, and so does the end: T(A) ≤ T(B) + δ. It does not matter by how much a time of A is earlier
// that something else holds up anyway. So B counts with the bounds of its times (view), and A with its times.
//
// The joules of the rest are the same, except for contents missing in A from a memory that has them in B; let c be the joules
// of their copies. With r the joules per nanosecond of everything idle, on the devices used in the end, A is no worse than B if
//
//	δ ≤ 0 where times count, and joules(A) + c + r·δ ≤ joules(B) where joules count
//
// and for their product as below. What A and B have to have in common: the devices used,
// if one may be off; the clock of a unit, where a change takes something; the workers of tasks that are to
// share one. Units of a device are sorted by when they are free, where they are alike.
//
// Only the search below A counts for B, and A was looked at before, with as many tasks left. So
// by induction over their number the best that follows any part is found, or was pruned by a bound.
type dominance struct {
	*model
	byDone map[uint64]*[]*memo
	spare  *memo
	mayBe  bool // off
	joules bool // copies draw something
	room   int  // pairs of numbers that may still be remembered

	device []platform.DeviceID // by device: the device that takes its place in the description of a part of a plan
	memory []platform.MemoryID // by memory
}

// mostRoom bounds the memory that a search takes, to some hundred megabytes.
const mostRoom = 10_000_000

// memo is a part of a plan.
type memo struct {
	used    uint64
	joules  float64
	times   []int64 // that it fixes
	least   []int64 // and what is known of them
	clocks  []platform.ClockID
	bound   []platform.WorkerID
	lacks   []float64 // by piece that is still read and memory: what a copy there draws
	sources []uint64  // by such piece, where ways have stages: where it is
}

func newDominance(m *model) *dominance {
	d := &dominance{model: m, byDone: map[uint64]*[]*memo{}, room: mostRoom, device: make([]platform.DeviceID, len(m.devices)), memory: make([]platform.MemoryID, len(m.platform.Memories))}
	for i := range m.devices {
		d.mayBe = d.mayBe || m.devices[i].restJ != m.devices[i].unusedJ
	}
	for i := range m.pieces {
		for _, row := range m.pieces[i].hops {
			d.joules = d.joules || slices.ContainsFunc(row, func(j float64) bool { return j != 0 })
		}
	}
	return d
}

// equivalent reports whether units are free at the same time, at the same clock.
func (d *dominance) equivalent(x *state, a, b platform.WorkerID) bool {
	return !d.unlike && x.free[a] == x.free[b] && x.clock[a] == x.clock[b]
}

func (d *dominance) covers(x *state, v *view) bool {
	list := d.byDone[x.done]
	if list == nil {
		list = new([]*memo)
		d.byDone[x.done] = list
	}
	k := d.describe(x, v)
	for i, other := range *list {
		if d.noWorse(other, k) {
			copy((*list)[1:i+1], (*list)[:i]) // it may well be the one for the next, too
			(*list)[0] = other
			return true
		}
	}
	if d.room -= len(k.times) + len(k.lacks)/2; d.room < 0 {
		return false // it is looked at, and not remembered
	}
	*list = append(slices.DeleteFunc(*list, func(other *memo) bool { return d.noWorse(k, other) }), k)
	d.spare = nil
	return false
}

// describe returns the features of a part of a plan.
func (d *dominance) describe(x *state, v *view) *memo {
	k := d.spare
	if k == nil {
		k = &memo{}
		d.spare = k
	}
	d.sortTwins(x)
	k.used, k.joules, k.bound = 0, x.joules, append(k.bound[:0], x.bound...)
	k.times, k.least, k.clocks = append(k.times[:0], x.last), append(k.least[:0], v.last), k.clocks[:0]
	for i, id := range d.device {
		k.used |= x.used >> id & 1 << i
		own := &d.devices[id]
		first := len(k.times)
		for _, w := range own.workers {
			k.times, k.least, k.clocks = append(k.times, x.free[w]), append(k.least, v.free[w]), append(k.clocks, x.clock[w])
		}
		if !d.unlike && len(own.workers) > 1 {
			k.sortUnits(first, len(own.workers))
		}
		if !own.switches {
			clear(k.clocks[len(k.clocks)-len(own.workers):])
		}
	}
	for t := range d.tasks {
		if x.done&(1<<t) != 0 || d.tasks[t].waitsOnlyFor(x, d.pieces) {
			continue
		}
		seen := uint64(0) // memories
		for _, id := range d.device {
			memory := d.devices[id].memory
			if d.tasks[t].least[id] >= 0 && seen&(1<<memory) == 0 {
				seen |= 1 << memory
				k.times = append(k.times, d.arrival(x, t, memory))
				k.least = append(k.least, v.arrives[t*len(d.platform.Memories)+int(memory)])
			}
		}
	}
	if d.joules {
		d.describePieces(k, x)
	}
	return k
}

// waitsOnlyFor reports whether a task left waits only for other tasks left.
func (t *task) waitsOnlyFor(x *state, pieces []piece) bool {
	return t.before != 0 && t.before&x.done == 0 && !slices.ContainsFunc(t.reads, func(i int32) bool { return pieces[i].writer < 0 })
}

// sortUnits sorts the units of a device, which are the last ones, by when they are free, and their clocks
// with them.
func (k *memo) sortUnits(first, n int) {
	clocks := k.clocks[len(k.clocks)-n:]
	for i := 1; i < n; i++ {
		for j := i; j > 0 && (k.times[first+j] < k.times[first+j-1] || k.times[first+j] == k.times[first+j-1] && clocks[j] < clocks[j-1]); j-- {
			k.times[first+j], k.times[first+j-1] = k.times[first+j-1], k.times[first+j]
			k.least[first+j], k.least[first+j-1] = k.least[first+j-1], k.least[first+j]
			clocks[j], clocks[j-1] = clocks[j-1], clocks[j]
		}
	}
}

// describePieces adds where contents are that are still to be read.
func (d *dominance) describePieces(k *memo, x *state) {
	k.lacks, k.sources = k.lacks[:0], k.sources[:0]
	for i := range d.pieces {
		p := &d.pieces[i]
		if p.readers&^x.done == 0 || p.writer >= 0 && x.done&(1<<p.writer) == 0 {
			continue
		}
		from := d.source(x, p)
		if d.staged {
			at, reached := uint64(0), uint64(0)
			for place, memory := range d.memory {
				if memory == from {
					at = 1 << place
				}
				reached |= x.reached[i] >> memory & 1 << place
			}
			k.sources = append(k.sources, at, reached)
			continue
		}
		for _, to := range d.memory {
			lack := 0.0
			if x.reached[i]&(1<<to) == 0 {
				lack = p.hops[from][to]
			}
			k.lacks = append(k.lacks, lack)
		}
	}
}

// noWorse reports whether no continuation of b beats the same continuation of a.
func (d *dominance) noWorse(a, b *memo) bool {
	if d.mayBe && a.used != b.used {
		return false
	}
	more, later := a.joules-b.joules, a.times[0]-b.least[0]
	for i := range a.times {
		if later = max(later, a.times[i]-b.least[i]); later > 0 && !d.pays(a, b, more, later) {
			return false
		}
	}
	if !slices.Equal(a.clocks, b.clocks) || !slices.Equal(a.bound, b.bound) {
		return false
	}
	for i := 0; i < len(a.sources); i += 2 {
		if a.sources[i] != b.sources[i] || b.sources[i+1]&^a.sources[i+1] != 0 {
			return false
		}
	}
	for i := range a.lacks {
		more += max(0, a.lacks[i]-b.lacks[i])
	}
	return d.pays(a, b, more, later)
}

// pays reports whether a is no worse than b, whatever follows, with more joules and later times by the given amounts.
func (d *dominance) pays(a, b *memo, more float64, later int64) bool {
	by := float64(later)
	switch {
	case d.objective == problem.Time:
		return later <= 0
	case d.objective == problem.EDP && later > 0:
		return false
	case later > 0:
		return more+float64(d.restOf(math.MaxUint64)*by) <= 0
	case d.objective == problem.Energy || more <= 0:
		return more+float64(d.restOf(b.used)*by) <= 0 || more <= 0
	}
	// Of T = T(b), and F ≥ 0 the joules of the rest, the loss of a is at most (E(a)+F+r·(T+δ))·(T+δ) − (E(b)+F+r·T)·T ≤
	// T·(more+2·r·δ) + δ·(E(a)+r·δ).
	rest := d.restOf(b.used)
	slope := more + float64(2*rest*by)
	return slope <= 0 && a.joules+float64(rest*by) >= 0 && float64(slope*float64(b.least[0]))+float64(by*(a.joules+float64(rest*by))) <= 0
}

// prefixes forgets parts of plans that are equal: the tasks were added in another order.
type prefixes struct {
	*model
	keys  map[string]bool
	key   []byte
	room  int  // bytes that may still be remembered
	exact bool // units of a device are not alike, since clocks or caps of the whole device decide who goes first
}

func newPrefixes(m *model) *prefixes {
	p := &prefixes{model: m, keys: map[string]bool{}, room: 16 * mostRoom, exact: m.unlike || m.platform.HasStates()}
	for i := range m.platform.Devices {
		d := &m.platform.Devices[i]
		p.exact = p.exact || len(d.Clocks) > 1 && d.Count > 1
	}
	return p
}

// equivalent reports whether neither unit has run anything.
func (p *prefixes) equivalent(x *state, a, b platform.WorkerID) bool {
	return !p.exact && !slices.ContainsFunc(x.steps, func(s step) bool { return s.worker == a || s.worker == b })
}

func (p *prefixes) covers(x *state, _ *view) bool {
	p.key = p.key[:0]
	for w := range p.platform.Workers {
		for _, s := range x.steps {
			if int(s.worker) == w {
				p.key = append(p.key, byte(s.task), byte(s.setting))
			}
		}
		p.key = append(p.key, MaxTasks)
	}
	if p.keys[string(p.key)] {
		return true
	}
	if p.room -= len(p.key) + 32; p.room > 0 { // with what the table takes for a key
		p.keys[string(p.key)] = true
	}
	return false
}
