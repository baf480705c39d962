package layerwise

import (
	"math"
	"slices"
)

// placing chooses the device of each tile of a step, as the heterogeneous earliest finish time heuristic does: tiles by rank, each on the device
// on which it ends first, in the earliest gap.
type placing struct {
	*step
	devices []int8
	fixed   []float64    // by storage and memory: when its transfer ends; 0 means none
	done    []float64    // by cell of a link: when all of it is there
	homes   []uint64     // by cell: the memories with parts of it
	there   []float64    // by cell and memory: when all of it is there; 0 means not known
	sent    []float64    // by part of a parcel and memory: when its transfer ends; 0 means none
	ends    []float64    // by tile
	units   []profile    // by device
	engines [][2]profile // by memory: copies out and in
	until   [][2]float64 // by memory: when they end for the tile at hand
}

// place returns the device of each tile; nil means that some tile can run nowhere.
func (p *step) place() []int8 {
	memories := len(p.set.Memories)
	h := &placing{step: p, devices: make([]int8, p.tiles), done: make([]float64, p.cells), homes: make([]uint64, p.cells), ends: make([]float64, p.tiles),
		units: make([]profile, len(p.set.Devices)), there: make([]float64, p.cells*memories), sent: make([]float64, p.parts*memories), engines: make([][2]profile, memories), until: make([][2]float64, memories)}
	for d := range p.set.Devices {
		h.units[d] = profile{p.set.Devices[d].Count, make([]busyFrom, 1, 256)}
	}
	for m := range h.engines {
		h.engines[m] = [2]profile{{1, make([]busyFrom, 1)}, {1, make([]busyFrom, 1)}}
	}
	if memories > 1 {
		h.fixed = make([]float64, p.storages*memories)
	}
	for l := range p.links {
		if p.links[l].edge.carried {
			for cell := range p.links[l].cells {
				h.homes[int(p.links[l].first)+cell] = 1 << p.set.HostMemory()
			}
		}
	}
	order := make([]int32, len(p.active))
	for i := range p.active {
		order[p.active[i].order] = int32(i)
	}
	for _, i := range order {
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
	p.findReaders(h.devices)
	return h.devices
}

// findReaders notes in which memories the cells of links are read.
func (p *step) findReaders(devices []int8) {
	for i := range p.links {
		l := &p.links[i]
		if l.bytes == 0 {
			continue
		}
		l.readers = make([]uint64, l.cells)
		to := &p.active[l.to]
		for k := range int32(to.tiled.tiles) {
			memory := uint64(1) << p.set.Devices[devices[to.first+k]].Memory
			if l.cellOf == nil {
				l.readers[0] |= memory
				continue
			}
			for _, cell := range l.needs.of(k) {
				l.readers[cell] |= memory
			}
		}
	}
}

// tile places a tile.
func (h *placing) tile(a *active, k int32) bool {
	best, least, begin := -1, math.Inf(1), 0.0
	for d := range h.set.Devices {
		if a.ns[d] < 0 {
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
	if len(h.set.Memories) > 1 {
		h.gathered(a, k, best, true)
	}
	t := a.first + k
	h.units[best].add(begin, least)
	h.ends[t], h.devices[t] = least, int8(best)
	if a.merges < 0 {
		h.complete(a, k, least, best, false)
		return true
	}
	m := a.merges + a.tiled.region[k]
	h.ends[m], h.devices[m] = max(h.ends[m], least), int8(best)
	h.complete(a, k, least, best, true)
	return true
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
	h.homes[cell] |= 1 << h.set.Devices[d].Memory
}

// gathered is when the inputs of a tile can be in the memory of a device; really takes the transfers down.
func (h *placing) gathered(a *active, k int32, d int, really bool) (at float64) {
	memory, memories := int(h.set.Devices[d].Memory), len(h.set.Memories)
	clear(h.until)
	if last := a.tiled.last; last != nil && last[k] >= 0 {
		at = h.ends[a.first+last[k]]
	}
	if h.fixed != nil {
		for _, f := range a.fixed {
			at = max(at, h.fixedIn(f, memory, really))
		}
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
			if l.bytes == 0 || h.homes[cell]&^(1<<memory) == 0 {
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
		sent := &h.sent[int(q.first+tile)*len(h.set.Memories)+memory]
		if *sent > 0 {
			end = max(end, *sent)
			continue
		}
		home, complete := int(h.set.HostMemory()), 0.0
		if !l.edge.carried {
			home, complete = int(h.set.Devices[h.devices[first+tile]].Memory), h.ends[first+tile]
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
	host := int(h.set.HostMemory())
	if memory == host {
		return 0
	}
	sent := &h.fixed[f.storage*len(h.set.Memories)+memory]
	if *sent > 0 {
		return *sent
	}
	end := h.transfer(host, memory, 0, f.bytes, really)
	if really {
		*sent = end
	}
	return end
}

// transfer is when bytes that are complete at a time in one memory can be in another one.
func (h *placing) transfer(from, to int, complete, bytes float64, really bool) float64 {
	w := &h.set.ways[from*len(h.set.Memories)+to]
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

// profile is how many units of a device, or copies of an engine, are busy over time. What is placed on a device of several units needs no
// choice of a unit: intervals of which no more than so many overlap fit on so many units.
type profile struct {
	units int
	steps []busyFrom // ascending, from time 0 on
}

// busyFrom is the number of busy units from a time on.
type busyFrom struct {
	at   float64
	busy int
}

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
