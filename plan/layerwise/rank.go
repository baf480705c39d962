package layerwise

import (
	"cmp"
	"context"
	"math"
	"slices"

	"dahl/dag"
	"dahl/parallel"
	"dahl/plan/problem"
	"dahl/platform"
)

// Ranked is a set of devices with the best lowering that the model knows there, by layer, and its value.
type Ranked struct {
	Devices string
	Layers  map[string]dag.LayerLowering
	Value   float64
}

// Efforts of a whole ranking, in simulated tiles.
const (
	comparing = 250_000 // sets
	sharing   = 60_000  // in a round, for all sets together
	tuning    = 8_000   // positions of knobs, while sets are compared
	fewKnobs  = 60      // of a network whose lowerings are compared by estimates
	atOnce    = 4       // sets between two looks at what is left
)

// round is a search of cuts on the first sets, and of no kind on more than some.
type round struct{ sets, ofAKind, effort int }

var rounds = [...]round{{4, 3, 60_000}, {2, 2, 200_000}}

// part is a part of some effort.
func part(of int, effort float64) int { return int(math.Ceil(float64(of) * effort)) }

// of is the round with a part of the whole effort, on fewer sets.
func (r round) of(effort float64) round {
	return round{part(r.sets, effort), part(r.ofAKind, effort), part(r.effort, effort)}
}

// ranking is a set in a ranking.
type ranking struct {
	*search
	point
	devices string
	base    *set   // at the clocks in force
	kind    [2]int // whether it has processors, and its number of other devices up to two
	flow    float64
	known   bool // the value is an estimate
	isTuned bool
	found   bool    // cuts were searched
	begins  []point // other lowerings to descend from
}

// Rank orders sets of devices: the best one of each kind first, and then the others, each the most promising first. Sets equal to one of these come last. It compares uniform cuts by their flow, estimates the steps of the best ones of each
// kind of set, and searches cuts for the best sets. Effort is a part of the whole effort. When ctx ends, the list is as good as it is by then, and may lack sets.
func (m *Model) Rank(ctx context.Context, sets []string, aim problem.Aim, effort float64) ([]Ranked, error) {
	var all []*ranking
	equal := map[*set][]string{} // sets behind the first of them
	for _, devices := range sets {
		if ctx.Err() != nil {
			break
		}
		set, err := m.setOf(devices)
		if err != nil {
			return nil, err
		}
		if others, known := equal[set]; known {
			equal[set] = append(others, devices)
			continue
		}
		equal[set] = nil
		all = append(all, &ranking{search: &search{ctx: ctx, set: set, aim: aim, brief: effort < 1}, devices: devices, base: set, kind: set.kind(), flow: math.Inf(1)})
	}
	m.findFlows(all)
	all = slices.DeleteFunc(all, func(r *ranking) bool { return math.IsInf(r.flow, 1) })
	slices.SortStableFunc(all, func(a, b *ranking) int { return cmp.Compare(a.flow, b.flow) })
	m.compare(all, effort)
	slices.SortStableFunc(all, (*ranking).compare)
	for _, r := range rounds {
		r = r.of(effort)
		m.each(r.chosen(all), func(of *ranking) { of.searchCuts(r.effort) })
		m.share(all, effort)
		slices.SortStableFunc(all, (*ranking).compare)
	}
	var ranked, last []Ranked
	for _, r := range leadersFirst(all) {
		ranked = append(ranked, Ranked{r.devices, m.byLayer(r.layers), r.value})
		for _, devices := range equal[r.base] {
			last = append(last, Ranked{devices, m.byLayer(r.layers), r.value})
		}
	}
	return append(ranked, last...), nil
}

// each does something for some sets, several at one time, until their context ends.
func (m *Model) each(some []*ranking, do func(*ranking)) {
	if len(some) == 0 {
		return
	}
	_ = parallel.Do(some[0].ctx, len(some), func(i int) error {
		r := some[i]
		r.worker = m.take()
		defer m.give(r.worker)
		do(r)
		return nil
	})
}

// eachWithin does something for the first sets, a few at one time, until a number of tiles is simulated.
func (m *Model) eachWithin(all []*ranking, tiles int, do func(*ranking)) {
	for at := 0; at < len(all) && tiles > 0; at += atOnce {
		some := all[at:min(at+atOnce, len(all))]
		for _, r := range some {
			r.left = 0
		}
		m.each(some, do)
		for _, r := range some {
			tiles += r.left
		}
	}
}

// findFlows finds the uniform cut of each set with the least flow.
func (m *Model) findFlows(all []*ranking) {
	var cuts []uniform
	at := map[uniform]int{}
	for _, r := range all {
		for _, u := range starts(r.set.units, r.set.others) {
			if _, known := at[u]; !known {
				at[u], cuts = len(cuts), append(cuts, u)
			}
		}
	}
	flows := make([][]flow, len(cuts))
	if len(all) == 0 || parallel.Do(all[0].ctx, len(cuts), func(i int) error {
		w := m.take()
		defer m.give(w)
		flows[i] = w.flowsUnder(m.layersOf(cuts[i]))
		return nil
	}) != nil {
		return
	}
	m.each(all, func(r *ranking) {
		best := uniform{}
		for _, u := range starts(r.set.units, r.set.others) {
			if v := r.flowOf(flows[at[u]], u); v < r.flow {
				best, r.flow = u, v
			}
		}
		r.layers = m.layersOf(best)
	})
}

// effort is the effort of a search on the set: none where it would not turn each knob once.
func (r *ranking) effort(most int) int {
	tiles := 0
	for _, f := range r.flowsUnder(r.layers) {
		tiles += int(f.count) * f.tiles
	}
	if most < steadySteps*tiles*len(r.knobs) {
		return 0
	}
	return most
}

// compare orders sets by their values. A further device has to make a step better by a fifteenth, since plans on fewer devices are nearer to what the model
// expects.
func (r *ranking) compare(to *ranking) int { return cmp.Compare(r.weighed(), to.weighed()) }

func (r *ranking) weighed() float64 { return r.value * (1 + float64(len(r.set.Devices))/15) }

// compare estimates the sets in turns of their kinds until the effort is spent. The others get their flow, times what it is too low in their kind. The
// best sets of processors are tuned.
func (m *Model) compare(all []*ranking, effort float64) {
	m.eachWithin(turns(all), part(comparing, effort), func(r *ranking) {
		r.value, r.known = r.search.of(r.layers), true
		r.tryClocks()
	})
	var tunable []*ranking
	for _, r := range all {
		if r.known && r.kind[1] == 0 && len(m.knobs) <= fewKnobs {
			tunable = append(tunable, r)
		}
	}
	slices.SortStableFunc(tunable, func(a, b *ranking) int { return cmp.Compare(a.value, b.value) })
	n := 0
	for left := part(tuning, effort); n < len(tunable) && left > 0; n++ {
		for i := range m.knobs {
			left -= len(tunable[n].evenly(&m.knobs[i]))
		}
	}
	m.each(tunable[:n], func(r *ranking) { r.point, r.isTuned = r.tuned(r.point), true })
	ratios := map[[2]int]float64{}
	for _, r := range all {
		if r.known {
			ratios[r.kind] = max(ratios[r.kind], r.value/r.flow)
		}
	}
	for _, r := range all {
		if !r.known {
			r.value = r.flow * max(1, ratios[r.kind])
		}
	}
}

// tryClocks goes to the best clock from those in force.
func (r *ranking) tryClocks() {
	for _, at := range r.base.atClocks(r.aim) {
		was := r.set
		r.set = at
		if v := r.search.of(r.layers); v < r.value {
			r.value = v
		} else {
			r.set = was
		}
	}
}

// turns lists the first set of each kind, then the second ones, and so on.
func turns(all []*ranking) (list []*ranking) {
	byKind, kinds := map[[2]int][]*ranking{}, [][2]int(nil)
	for _, r := range all {
		if byKind[r.kind] == nil {
			kinds = append(kinds, r.kind)
		}
		byKind[r.kind] = append(byKind[r.kind], r)
	}
	for len(list) < len(all) {
		for _, kind := range kinds {
			if of := byKind[kind]; len(of) > 0 {
				list, byKind[kind] = append(list, of[0]), of[1:]
			}
		}
	}
	return list
}

// kind tells sets apart whose flows differ from their steps in unlike ways.
func (s *set) kind() (k [2]int) {
	if s.processors > 0 {
		k[0] = 1
	}
	return [2]int{k[0], min(s.others, 2)}
}

// tuned is a lowering in which each knob is turned by itself to the position with the least flow, if its step is better.
func (s *search) tuned(p point) point {
	layers := slices.Clone(p.layers)
	for i := range s.knobs {
		if s.ctx.Err() != nil {
			return p
		}
		k := &s.knobs[i]
		least := math.Inf(1)
		for _, cut := range s.evenly(k) {
			of := layers[k.layer]
			*of.Cut(k.pass) = cut
			if v := s.flowOfKnob(k, of); v < least {
				least = v
				layers[k.layer] = of
			}
		}
	}
	if v := s.of(layers); v < p.value {
		return point{layers, v}
	}
	return p
}

// mostIdle bounds the time of a knob in a brief search, relative to units that are always busy.
const mostIdle = 1.2

// evenly lists the positions of a knob with work for at least half of the units, or whole operations.
func (s *search) evenly(k *knob) []dag.Cut {
	units := s.set.units
	return slices.DeleteFunc(k.cuts(units), func(cut dag.Cut) bool {
		parts := k.parts(&cut)
		idle := parts > 1 && s.brief && roundsOf(parts, units)*float64(units) > mostIdle*float64(parts)
		return idle || parts > 1 && 2*parts < units || cut.Accumulators != 0 && cut.Accumulators != min(4, k.terms(&cut))
	})
}

// chosen are the first sets, in which cuts are searched.
func (of round) chosen(all []*ranking) (some []*ranking) {
	inKind := map[[2]int]int{}
	for _, r := range all {
		if inKind[r.kind]++; inKind[r.kind] <= of.ofAKind && len(some) < of.sets {
			some = append(some, r)
		}
	}
	return some
}

// searchCuts searches cuts on a set.
func (r *ranking) searchCuts(effort int) {
	r.left = r.effort(effort)
	if r.set != r.base { // which clock is best depends on the cuts
		r.set = r.base
		r.value = r.search.of(r.layers)
	}
	if r.kind[1] == 0 && !r.isTuned {
		r.point = r.tuned(r.point)
	}
	r.point, r.found = r.descend(r.point), true
	if r.begins == nil && !r.over() {
		r.begins = r.otherStarts(r.value)
	}
	for len(r.begins) > 0 && !r.over() {
		if p := r.descendTogether(r.begins[0]); p.value < r.value {
			r.point = p
		}
		r.begins = r.begins[1:]
	}
	if r.tryClocks(); r.set != r.base {
		r.point = r.descend(r.point)
	}
}

// leadersFirst puts the first set of each kind before the others.
func leadersFirst(all []*ranking) []*ranking {
	var leaders, others []*ranking
	seen := map[[2]int]bool{}
	for _, r := range all {
		if seen[r.kind] {
			others = append(others, r)
		} else {
			seen[r.kind], leaders = true, append(leaders, r)
		}
	}
	return append(leaders, others...)
}

// share tries the best lowering of each kind on the other sets of its kind.
func (m *Model) share(all []*ranking, effort float64) {
	best := map[[2]int]*ranking{}
	for _, r := range all {
		if of := best[r.kind]; r.found && (of == nil || r.value < of.value) {
			best[r.kind] = r
		}
	}
	others := slices.DeleteFunc(slices.Clone(all), func(r *ranking) bool { return best[r.kind] == nil || best[r.kind] == r })
	m.eachWithin(others, part(sharing, effort), func(r *ranking) {
		layers := best[r.kind].layers
		if v := r.search.of(layers); v < r.value {
			r.point, r.known = point{layers, v}, true
		}
	})
}

// byLayer names the layers that can be cut.
func (m *Model) byLayer(layers []dag.LayerLowering) map[string]dag.LayerLowering {
	named := map[string]dag.LayerLowering{}
	for i := range m.knobs {
		at := m.knobs[i].layer
		named[m.layers[at]] = layers[at]
	}
	return named
}

// flow is some operations of one price, whose tiles are shared by units.
type flow struct {
	*tiled
	node  *node
	count float64
}

// flowsUnder are the operations of a lowering.
func (w *worker) flowsUnder(layers []dag.LayerLowering) (all []flow) {
	at := map[*tiled]int{}
	for n := range w.nodes {
		node := &w.nodes[n]
		if !w.runs(node, layers) {
			continue
		}
		t := w.tiledUnder(int32(n), layers[node.layerAt])
		i, ok := at[t]
		if !ok {
			i = len(all)
			at[t] = i
			all = append(all, flow{tiled: t, node: node})
		}
		all[i].count++
	}
	return all
}

// flowOf is the value of a step if one operation came after the other, each shared by all units of a kind. All have the kind with
// the best value, where it can run them. Where samples are in parts, the memories of a kind exchange the weights.
func (s *search) flowOf(all []flow, u uniform) float64 {
	least := math.Inf(1)
	for d := range s.set.Devices {
		kind := s.set.Devices[d].Kind
		first := slices.IndexFunc(s.set.Devices, func(e platform.Device) bool { return e.Kind == kind && !e.PlacedOnly })
		if first == d {
			e := s.flowOn(all, kind)
			if exchange := s.exchanged(kind, u); exchange > 0 {
				if !u.sums && kind != platform.CPU {
					continue // the samples would move to the sums
				}
				e.Seconds += exchange
			}
			e.Joules += s.set.idle * e.Seconds
			least = min(least, e.Value(s.aim))
		}
	}
	return least
}

// flowOfKnob is the value of the operations of a knob.
func (s *search) flowOfKnob(k *knob, of dag.LayerLowering) float64 {
	var all []flow
	for _, n := range k.nodes {
		node := &s.nodes[n]
		if node.fused < 0 || s.network.Fused[node.fused].Applies(of) == node.isFused {
			all = append(all, flow{tiled: s.tiledBy(node, node.Cut(of)), node: node, count: 1})
		}
	}
	least := math.Inf(1)
	for d := range s.set.Devices {
		if kind := s.set.Devices[d].Kind; !s.set.Devices[d].PlacedOnly {
			e := s.flowOn(all, kind)
			e.Joules += s.set.idle * e.Seconds
			least = min(least, e.Value(s.aim))
		}
	}
	return least
}

// flowOn is the time and the joules above idle of operations on the units of a kind.
func (s *search) flowOn(all []flow, kind string) (e Estimate) {
	for _, f := range all {
		c, err := s.costsOf(s.set, f.node, f.tiled)
		if err != nil {
			return Estimate{math.Inf(1), math.Inf(1)}
		}
		takes, units, other := 0.0, 0, math.Inf(1)
		for d := range s.set.Devices {
			of := &s.set.Devices[d]
			switch {
			case c.ns[d] < 0:
			case of.Kind == kind && !of.PlacedOnly:
				takes, units = c.ns[d], units+of.Count
				if units == of.Count {
					e.Joules += f.count * c.joules[d]
				}
			default:
				other = min(other, c.ns[d])
			}
		}
		if units == 0 {
			takes, units = other, 1
		}
		e.Seconds += f.count * takes * max(1, roundsOf(f.tiles, units)) * 1e-9
	}
	return e
}

// roundsOf is how many tiles a unit has one after the other: in the middle between the most and the mean.
func roundsOf(tiles, units int) float64 {
	return (float64(dag.CeilDiv(tiles, units)) + float64(tiles)/float64(units)) / 2
}

// exchanged is the seconds to move the weights of layers in parts between the memories of a kind, and back what changes them.
func (s *search) exchanged(kind string, u uniform) float64 {
	var memories []int
	for d := range s.set.Devices {
		if of := &s.set.Devices[d]; of.Kind == kind && !of.PlacedOnly && !slices.Contains(memories, s.set.memory[d]) {
			memories = append(memories, s.set.memory[d])
		}
	}
	if len(memories) < 2 || u.samples < 2 {
		return 0
	}
	w, ns := &s.set.ways[memories[0]*s.set.memories+memories[1]], 0.0
	heavy := len(s.layers)
	if u.light {
		heavy = s.firstHeavy(u.samples)
	}
	for _, of := range s.weightsOf[:heavy] {
		if of.bytes > 0 {
			ns += of.bytes*w.nsPerByte + w.latency
		}
	}
	return 2e-9 * float64(len(memories)-1) * ns
}
