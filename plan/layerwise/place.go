package layerwise

import (
	"math"
	"slices"

	"dahl/dag"
	"dahl/platform"
)

// how is a way to choose devices.
type how uint8

// The ways. By parts, tiles of one part of a dimension are on one of the other devices, as the policy data-parallel has them. Apart, operations aside are
// on processors, and the others on other devices by parts, as the policy apart has them.
const (
	free how = iota
	apart
	byParts
)

// placing chooses the device of each tile of a step, as the heterogeneous earliest finish time heuristic does: tiles by rank, each on the device
// on which it ends first, in the earliest gap.
type placing struct {
	*step
	how
	fixed   []float64           // by storage and memory: when its transfer ends; 0 means none
	done    []float64           // by cell of a link: when all of it is there
	homes   platform.MemorySets // by cell: the memories with parts of it
	there   []float64           // by cell and memory: when all of it is there; 0 means not known
	sent    []float64           // by part of a parcel and memory: when its transfer ends; 0 means none
	ends    []float64           // by tile
	units   []profile           // by device
	engines [][2]profile        // by memory: copies out and in
	until   [][2]float64        // by memory: when they end for the tile at hand
}

// place returns the device of each tile; nil means that some tile can run nowhere.
func (w *worker) place(p *step, way how) []int16 {
	memories := p.set.memories
	p.devices = sized(p.devices, p.tiles)
	h := &w.placing
	*h = placing{step: p, how: way, done: sized(h.done, p.cells), homes: h.homes, ends: sized(h.ends, p.tiles), fixed: sized(h.fixed, p.storages*memories),
		units: h.units, there: sized(h.there, p.cells*memories), sent: sized(h.sent, p.parts*memories),
		engines: h.engines, until: sized(h.until, memories)}
	h.homes.Reset(p.cells, memories)
	h.units = append(h.units, make([]profile, max(0, len(p.set.Devices)-len(h.units)))...)
	h.engines = append(h.engines, make([][2]profile, max(0, memories-len(h.engines)))...)
	for d := range p.set.Devices {
		h.units[d].begin(p.set.Devices[d].Count)
	}
	for m := range h.engines {
		h.engines[m][0].begin(1)
		h.engines[m][1].begin(1)
	}
	for l := range p.links {
		if p.links[l].edge.carried {
			for cell := range p.links[l].cells {
				h.homes.Only(p.links[l].first+int32(cell), 0) // the host's
			}
		}
	}
	for _, i := range p.byRank {
		a := &p.active[i]
		for k := range int32(a.tiled.tiles) {
			if !h.tile(a, k) {
				return nil
			}
		}
		if a.merges >= 0 {
			h.merge(a)
		}
	}
	p.findReaders()
	return p.devices
}

// findReaders notes in which memories the cells of links are read.
func (p *step) findReaders() {
	p.readers.Reset(p.cells, p.set.memories)
	for i := range p.links {
		l := &p.links[i]
		if l.bytes == 0 {
			continue
		}
		to := &p.active[l.to]
		for k := range int32(to.tiled.tiles) {
			memory := platform.MemoryID(p.set.memory[p.devices[to.first+k]])
			if l.cellOf == nil {
				p.readers.Add(l.first, memory)
				continue
			}
			for _, cell := range l.needs.of(k) {
				p.readers.Add(l.first+cell, memory)
			}
		}
	}
}

// tile places a tile.
func (h *placing) tile(a *active, k int32) bool {
	best, least, begin, home := -1, math.Inf(1), 0.0, -1
	if h.how == byParts || h.how == apart && !a.aside {
		home = h.home(a, k)
	}
	for d := range h.set.Devices {
		if a.ns[d] < 0 || h.how == apart && !h.belongs(a, d) || home >= 0 && d != home {
			continue
		}
		at := h.units[d].gap(h.gathered(a, k, d, false), a.ns[d])
		if end := at + a.ns[d]; end < least {
			best, least, begin = d, end, at
		}
	}
	if best < 0 {
		return false
	}
	if h.set.memories > 1 {
		h.gathered(a, k, best, true)
	}
	t := a.first + k
	h.units[best].add(begin, least)
	h.ends[t], h.devices[t] = least, int16(best)
	if a.merges < 0 {
		h.complete(a, k, least, best, false)
		return true
	}
	m := a.merges + a.tiled.region[k]
	h.ends[m], h.devices[m] = max(h.ends[m], least), int16(best)
	h.complete(a, k, least, best, true)
	return true
}

// home is the device of the part that a tile has: of samples, or of another dimension where no weights are written. Below zero it has none.
func (h *placing) home(a *active, k int32) int {
	rest, at, parts := int(k), 0, 1
	for i := len(a.Sides) - 1; i >= 0; i-- {
		n := a.tiled.parts[i]
		if s := &a.Sides[i]; n > 1 && (s.Along == dag.AlongSamples || s.Pass != dag.WeightGradientPass) {
			at, parts = rest%n, n // the first such side counts
		}
		rest /= n
	}
	if parts == 1 {
		return -1
	}
	var others []int
	for d := range h.set.Devices {
		if of := &h.set.Devices[d]; !of.IsProcessor() && !of.PlacedOnly && a.ns[d] >= 0 {
			others = append(others, d)
		}
	}
	if len(others) == 0 {
		return -1
	}
	return others[(2*at+1)*len(others)/(2*parts)]
}

// belongs reports whether an operation may be on a device where operations aside are apart, see the policy of that name.
func (h *placing) belongs(a *active, d int) bool {
	if h.mayHave(a, d) {
		return true
	}
	for e := range h.set.Devices {
		if h.mayHave(a, e) && !h.set.Devices[e].PlacedOnly && a.ns[e] >= 0 {
			return false
		}
	}
	return true
}

func (h *placing) mayHave(a *active, d int) bool {
	of := &h.set.Devices[d]
	switch {
	case !a.aside || !of.IsProcessor():
		return of.IsProcessor() == a.aside
	case a.after:
		return h.set.last < 0 || d == h.set.last
	}
	return d != h.set.last || of.Count > 1
}

// merge adds the accumulators of each part of the result, where the last of them is.
func (h *placing) merge(a *active) {
	for k := range int32(a.tiled.regions()) {
		m := a.merges + k
		d := int(h.devices[m])
		at := h.units[d].gap(h.ends[m], a.merge[d])
		h.units[d].add(at, at+a.merge[d])
		h.ends[m] = at + a.merge[d]
		for _, o := range a.out {
			if l := &h.links[o]; l.results {
				h.note(l, k, h.ends[m], d)
			}
		}
	}
}

// complete notes the end of a tile in the cells of its links; with sums behind it only those that do not wait for them.
func (h *placing) complete(a *active, k int32, end float64, d int, summed bool) {
	for _, o := range a.out {
		if l := &h.links[o]; !summed || !l.results {
			h.note(l, k, end, d)
		}
	}
}

func (h *placing) note(l *activeLink, k int32, end float64, d int) {
	if l.edge.carried {
		return
	}
	cell := l.first
	if l.cellOf != nil {
		cell += l.cellOf[k]
	}
	h.done[cell] = max(h.done[cell], end)
	h.homes.Add(int32(cell), platform.MemoryID(h.set.memory[d]))
}

// gathered is when the inputs of a tile can be in the memory of a device; really takes the transfers down.
func (h *placing) gathered(a *active, k int32, d int, really bool) (at float64) {
	memory, memories := h.set.memory[d], h.set.memories
	clear(h.until)
	if last := a.tiled.last; last != nil && last[k] >= 0 {
		at = h.ends[a.first+last[k]]
	}
	for _, f := range a.fixed {
		at = max(at, h.fixedIn(f, memory, really))
	}
	for _, in := range a.in {
		l := &h.links[in]
		one := [1]int32{}
		cells := one[:]
		if l.cellOf != nil {
			cells = l.needs.of(k)
		}
		for _, c := range cells {
			cell := int(l.first + c)
			if l.edge.carried && l.bytes == 0 {
				continue
			}
			if l.bytes == 0 || h.homes.Of(int32(cell)).Within(platform.MemoryID(memory)) {
				at = max(at, h.done[cell])
				continue
			}
			there := &h.there[cell*memories+memory]
			if *there > 0 {
				at = max(at, *there)
				continue
			}
			end := h.fetched(l, c, memory, really)
			if really {
				*there = end
			}
			at = max(at, end)
		}
	}
	return at
}

// fetched is when a cell can be in a memory.
func (h *placing) fetched(l *activeLink, c int32, memory int, really bool) (end float64) {
	from := &h.active[l.from]
	q := &from.parcels[l.parcel]
	first := from.first
	if l.results {
		first = from.merges
	}
	n := l.size[c]
	for k := range n {
		tile := k
		if l.cellOf != nil {
			tile = l.members.of(c)[k]
		}
		sent := &h.sent[int(q.first+tile)*h.set.memories+memory]
		if *sent > 0 {
			end = max(end, *sent)
			continue
		}
		home, complete := 0, 0.0 // the host's
		if !l.edge.carried {
			home, complete = h.set.memory[h.devices[first+tile]], h.ends[first+tile]
		}
		if home == memory {
			end = max(end, complete)
			continue
		}
		arrives := h.transfer(home, memory, complete, q.bytes, really)
		if really {
			*sent = arrives
		}
		end = max(end, arrives)
	}
	return end
}

// fixedIn is when a storage that nothing writes can be in a memory.
func (h *placing) fixedIn(f fixed, memory int, really bool) float64 {
	if memory == 0 {
		return 0 // the host's
	}
	sent := &h.fixed[f.storage*h.set.memories+memory]
	if *sent > 0 {
		return *sent
	}
	end := h.transfer(0, memory, 0, f.bytes, really)
	if really {
		*sent = end
	}
	return end
}

// transfer is when bytes that are complete at a time in one memory can be in another one.
func (h *placing) transfer(from, to int, complete, bytes float64, really bool) float64 {
	w := &h.set.ways[from*h.set.memories+to]
	takes, begin := w.latency+w.nsPerByte*bytes, complete
	if !w.engine {
		return begin + takes
	}
	out, in := &h.engines[from][0], &h.engines[to][1]
	begin = max(begin, h.until[from][0], h.until[to][1])
	for {
		next := in.gap(out.gap(begin, takes), takes)
		if next == begin {
			break
		}
		begin = next
	}
	if really {
		out.add(begin, begin+takes)
		in.add(begin, begin+takes)
	}
	h.until[from][0], h.until[to][1] = begin+takes, begin+takes
	return begin + takes
}

// profile is how many units of a device, or copies of an engine, are busy over time. Tiles are placed on a device without a choice of the
// unit: where at most n of some intervals overlap, n units have room for all.
type profile struct {
	units int
	steps []busyFrom // ascending, from time 0 on
}

// busyFrom is the number of busy units from a time on.
type busyFrom struct {
	at   float64
	busy int
}

// begin makes a profile of units that are free.
func (p *profile) begin(units int) { p.units, p.steps = units, append(p.steps[:0], busyFrom{}) }

// at is the step at a time.
func (p *profile) at(time float64) int {
	lo, hi := 0, len(p.steps)
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; p.steps[mid].at <= time {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// gap is the first time from when on a unit is free for some time.
func (p *profile) gap(from, takes float64) float64 {
	for i := p.at(from); i < len(p.steps); i++ {
		if s := &p.steps[i]; s.busy >= p.units {
			from = p.steps[i+1].at // the last step has no busy unit
		} else if i+1 < len(p.steps) && p.steps[i+1].at >= from+takes {
			break
		}
	}
	return from
}

// add takes a unit for some time.
func (p *profile) add(begin, end float64) {
	first := p.split(begin)
	last := p.split(end)
	for i := first; i < last; i++ {
		p.steps[i].busy++
	}
}

// split makes a time the beginning of a step.
func (p *profile) split(time float64) int {
	i := p.at(time)
	if p.steps[i].at == time {
		return i
	}
	p.steps = slices.Insert(p.steps, i+1, busyFrom{time, p.steps[i].busy})
	return i + 1
}
