package exact

import (
	"math"
	"math/bits"
	"slices"

	"dahl/plan/problem"
	"dahl/platform"
	"dahl/schedule"
)

// Bounds of all plans that go on from a part of one.
//
// Time. A task on device d starts no sooner than a unit of d is free, and no sooner than the earliest ends of its predecessors,
// wherever they run, with the ways of their data. After its end
// there follows the longest chain of those that wait for it, each where it takes least with the way there
// (tails).
//
// Area. Let v(d) ≥ 0 be weights with Σ units(d)·v(d) = 1. No unit works longer than the makespan T, so
//
//	T ≥ Σ over units v(d)·(from when it can run anything) + Σ over tasks left of the v(d)·time of where it goes
//
// and of where it goes the least is a bound. Joules. Let r be the joules per nanosecond of everything idle, e(i) the joules of
// task i above that, and 0 ≤ s ≤ 1. The joules are those so far and
//
//	Σ e(i) + r·T ≥ Σ e(i) + r·(1−s)·T' + r·s·(area) ≥ r·(1−s)·T' + r·s·Σ v·free + Σ over tasks left min (e(i) + r·s·v(d)·time)
//
// for a bound T' of the time. So the choice between a frugal device and a free one weighs joules against time at once. The
// weights are found for the whole graph by multiplicative
// weights ([schedule.MultiplicativeWeights]), for several s.

// area is a bound by weights.
type area struct {
	weights []float64 // by device, with r·s: joules per nanosecond of a unit
	share   float64   // s
	least   []float64 // by task: the least that it adds
}

// view is the bounds for a part of a plan.
type view struct {
	arrives []int64 // by task left and memory: when it has what the task waits for, at least
	ends    []int64 // by task left and device: when the task ends there, at least
	first   []int64 // by task left: when it ends anywhere, at least
	free    []int64 // by worker: from when it can run anything that is left, at least
	last    int64   // the makespan, at least
	soonest []int64 // by device: when the first of its units is free
}

func (s *search) newView() view {
	n := len(s.tasks)
	return view{arrives: make([]int64, n*len(s.platform.Memories)), ends: make([]int64, n*len(s.devices)), first: make([]int64, n),
		free: make([]int64, len(s.platform.Workers)), soonest: make([]int64, len(s.devices))}
}

// lower returns a lower bound of all plans that continue a part of one. The view belongs to that part.
func (m *model) lower(x *state, v *view) float64 {
	m.lookAhead(x, v)
	last := float64(v.last)
	for i := range m.timeAreas {
		last = max(last, math.Ceil(float64(m.timeAreas[i].bound(m, x, v)*(1-1e-9))))
	}
	if m.objective == problem.Time {
		return last
	}
	rest := m.restOf(x.used)
	joules := 0.0
	for i := range m.energyArea {
		a := &m.energyArea[i]
		joules = max(joules, a.bound(m, x, v)+float64((rest-float64(a.share*m.restOf(0)))*last))
	}
	return m.score(last, float64((x.joules+joules)*(1-tolerance/10)))
}

// value returns the value of a complete plan in the model.
func (m *model) value(x *state) float64 {
	return m.score(float64(x.last), x.joules+float64(m.restOf(x.used)*float64(x.last)))
}

// score is the objective in the units of the search: nanoseconds, joules, or their product.
func (m *model) score(nanos, joules float64) float64 {
	switch m.objective {
	case problem.Time:
		return nanos
	case problem.EDP:
		return float64(joules * nanos)
	}
	return joules
}

// shown is a value as the objective counts it: seconds instead of nanoseconds.
func (m *model) shown(value float64) float64 {
	if m.objective == problem.Energy {
		return value
	}
	return value / 1e9
}

// bound is the bound of a part of a plan, without the share of the makespan that is no area.
func (a *area) bound(m *model, x *state, v *view) (sum float64) {
	for d := range m.devices {
		busy := int64(0)
		for _, w := range m.devices[d].workers {
			busy += v.free[w]
		}
		sum += float64(a.weights[d] * float64(busy))
	}
	for t := range m.tasks {
		if x.done&(1<<t) == 0 {
			sum += a.least[t]
		}
	}
	return sum
}

// lookAhead finds when the tasks left can end at the earliest.
func (m *model) lookAhead(x *state, v *view) {
	memories, devices := len(m.platform.Memories), len(m.devices)
	for d := range m.devices {
		v.soonest[d] = math.MaxInt64
		for _, w := range m.devices[d].workers {
			v.soonest[d] = min(v.soonest[d], x.free[w])
		}
	}
	v.last = x.last
	for _, t := range m.sorted {
		if x.done&(1<<t) != 0 {
			continue
		}
		for to := range memories {
			v.arrives[int(t)*memories+to] = -1 // not known
		}
		first, through := int64(noWay), int64(noWay)
		for d := range devices {
			at := int(t)*devices + d
			if v.ends[at] = noWay; m.tasks[t].least[d] < 0 {
				continue
			}
			arrives := &v.arrives[int(t)*memories+int(m.devices[d].memory)]
			if *arrives < 0 {
				*arrives = m.arrivesAtLeast(x, v, int(t), m.devices[d].memory)
			}
			v.ends[at] = min(noWay, max(*arrives, v.soonest[d])+m.tasks[t].least[d])
			first, through = min(first, v.ends[at]), min(through, v.ends[at]+m.tails[t][d])
		}
		v.first[t] = first
		v.last = max(v.last, through)
	}
	m.freeAtLeast(x, v)
}

// arrivesAtLeast bounds when a memory has what a task waits for.
func (m *model) arrivesAtLeast(x *state, v *view, t int, memory platform.MemoryID) int64 {
	at, own := m.arrival(x, t, memory), &m.tasks[t]
	for before := own.before &^ x.done; before != 0; before &= before - 1 {
		at = max(at, v.first[bits.TrailingZeros64(before)])
	}
	for _, i := range own.reads {
		p := &m.pieces[i]
		if p.writer < 0 || x.done&(1<<p.writer) != 0 {
			continue
		}
		least := int64(noWay)
		for d := range m.devices {
			least = min(least, v.ends[int(p.writer)*len(m.devices)+d]+p.ways[m.devices[d].memory][memory])
		}
		at = max(at, least)
	}
	return min(at, noWay)
}

// freeAtLeast bounds from when workers can run anything that is left. Where nothing of that starts
// before the makespan, the makespan counts: the worker idles until then.
func (m *model) freeAtLeast(x *state, v *view) {
	for d := range m.devices {
		next := v.last
		for t := range m.tasks {
			if x.done&(1<<t) == 0 && m.tasks[t].least[d] >= 0 {
				next = min(next, v.arrives[t*len(m.platform.Memories)+int(m.devices[d].memory)])
			}
		}
		for _, w := range m.devices[d].workers {
			v.free[w] = max(x.free[w], next)
		}
	}
}

// addTails finds what follows each task at least.
func (m *model) addTails() {
	m.tails, m.ranks = make([][]int64, len(m.tasks)), make([]int64, len(m.tasks))
	for k := len(m.sorted) - 1; k >= 0; k-- {
		t := m.sorted[k]
		m.tails[t] = make([]int64, len(m.devices))
		for d := range m.devices {
			for after := m.tasks[t].after; after != 0; after &= after - 1 {
				next := bits.TrailingZeros64(after)
				least := int64(noWay)
				for to := range m.devices {
					if takes := m.tasks[next].least[to]; takes >= 0 {
						least = min(least, m.wayBetween(t, next, m.devices[d].memory, m.devices[to].memory)+takes+m.tails[next][to])
					}
				}
				m.tails[t][d] = max(m.tails[t][d], least)
			}
		}
		m.ranks[t] = noWay
		for d := range m.devices {
			if takes := m.tasks[t].least[d]; takes >= 0 {
				m.ranks[t] = min(m.ranks[t], takes+m.tails[t][d])
			}
		}
	}
}

// wayBetween is how long what one task writes for another takes from memory to memory.
func (m *model) wayBetween(writer int32, reader int, from, to platform.MemoryID) (ns int64) {
	for _, i := range m.tasks[reader].reads {
		if p := &m.pieces[i]; p.writer == writer {
			ns = max(ns, p.ways[from][to])
		}
	}
	return ns
}

// shares are the parts of the makespan in bounds of joules that areas bound.
var shares = []float64{0, 0.25, 0.5, 0.75, 1}

// addAreas finds the weights.
func (m *model) addAreas() {
	m.timeAreas = []area{m.newArea(1, 1, func(*setting) float64 { return 0 })}
	if m.objective == problem.Time {
		return
	}
	for _, share := range shares {
		m.energyArea = append(m.energyArea, m.newArea(share, float64(share*m.restOf(0)), func(s *setting) float64 { return s.joules }))
	}
}

// newArea looks for good weights, whose sum over all units is given.
func (m *model) newArea(share, total float64, joules func(*setting) float64) (best area) {
	weights := slices.Repeat([]float64{1}, len(m.devices))
	most := math.Inf(-1)
	schedule.MultiplicativeWeights(weights, func(loads []float64) bool {
		sum := 0.0
		for d := range weights {
			sum += float64(weights[d] * float64(len(m.devices[d].workers)))
		}
		for d := range weights {
			weights[d] *= total / sum
		}
		a := area{weights: slices.Clone(weights), share: share, least: make([]float64, len(m.tasks))}
		bound := 0.0
		for t := range m.tasks {
			a.least[t] = math.Inf(1)
			var at *setting
			for i := range m.tasks[t].settings {
				s := &m.tasks[t].settings[i]
				if v := joules(s) + float64(weights[s.device]*float64(m.devices[s.device].dispatch+s.takes)); v < a.least[t] {
					a.least[t], at = v, s
				}
			}
			bound += a.least[t]
			loads[at.device] += float64(m.devices[at.device].dispatch+at.takes) / float64(len(m.devices[at.device].workers))
		}
		if bound > most {
			most, best = bound, a
		}
		return total != 0
	})
	return best
}
