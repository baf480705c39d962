package layerwise

import (
	"dahl/platform"
	"dahl/schedule/ready"
)

// run is some steps of a network as a list schedule: a unit that is free takes the first of the ready tiles of its device, by step and
// rank. [worker.place] gives tiles to devices. A result is sent to the memories of its readers as soon as it is complete.
type run struct {
	*step
	steps     int
	now       float64
	need      []int32 // by instance
	left      []int32 // by cell of each step
	away      []int32 // by cell of each step and memory: its tiles that are not there yet
	placed    []int16 // by tile: its device; nil where there is one
	events    ready.Heap[event]
	lanes     []lane              // by device
	out, into []float64           // by memory: when the copy engine is free
	to        platform.MemorySets // where a part of a parcel goes

	ends   []float64 // by step
	joules float64   // of transfers
	used   []float64 // by device: joules of tiles
	span   []float64 // by device: ns with some unit busy
}

// lane is the units of a device.
type lane struct {
	queue   ready.Heap[queued] // the ready tiles
	free    int
	changed float64 // when all units became idle or the first one busy
	tiles   int     // of a step: they begin before all tiles of the next one; 0 means that steps may overlap
	begun   int
}

// event is the end of a tile, or the arrival of its part of a parcel in a memory.
type event struct {
	at     float64
	of     int32 // the instance
	parcel int16 // -1 means that the tile ends
	memory int16
}

// Before orders events by time. Those at one time follow each other as the order of their pushes has it, which is the same in every run.
func (e event) Before(o event) bool { return e.at < o.at }

// queued is a ready tile: its step, its order and its number, as bits.
type queued uint64

// Before orders ready tiles by step, and then by order.
func (q queued) Before(o queued) bool { return q < o }

const (
	tileBits  = 24
	orderBits = 16
)

// start begins a run of some steps; nil means that some tile can run nowhere.
func (w *worker) start(p *step, steps int, way how) *run {
	r := &w.run
	devices, memories := len(p.set.Devices), p.set.memories
	*r = run{step: p, steps: steps, events: r.events[:0], lanes: sized(r.lanes, devices), ends: sized(r.ends, steps), used: sized(r.used, devices), span: sized(r.span, devices),
		need: sized(r.need, steps*p.tiles), left: sized(r.left, steps*p.cells), away: r.away, out: sized(r.out, memories), into: sized(r.into, memories), to: r.to}
	r.to.Reset(1, memories)
	if devices > 1 {
		if r.placed = w.place(p, way); r.placed == nil {
			return nil
		}
	}
	for d := range r.lanes {
		r.lanes[d] = lane{queue: r.lanes[d].queue[:0], free: p.set.Devices[d].Count}
	}
	for _, d := range r.placed {
		if of := &p.set.Devices[d]; way == apart && of.IsProcessor() && of.Count == 1 {
			r.lanes[d].tiles++
		}
	}
	if memories > 1 {
		r.away = sized(r.away, steps*p.cells*memories)
	}
	if way == apart {
		r.drop()
	}
	for s := range steps {
		r.prepare(s)
	}
	for i, n := range r.need {
		if n == 0 {
			r.ready(int32(i))
		}
	}
	return r
}

// drop leaves out the links from readers to the next writer of what they read where one of them is aside or they are in other memories. These have versions
// or copies.
func (r *run) drop() {
	for i := range r.active {
		a := &r.active[i]
		a.where = 0
		for k := range a.tiled.tiles {
			a.where |= 1 << r.set.memory[r.placed[int(a.first)+k]]
		}
	}
	for i := range r.links {
		l := &r.links[i]
		from, to := &r.active[l.from], &r.active[l.to]
		l.dropped = l.edge.carried && !l.edge.data && (from.aside || to.aside || from.where&to.where == 0)
	}
}

// prepare counts what the tiles of a step wait for.
func (r *run) prepare(s int) {
	need := r.need[s*r.tiles : (s+1)*r.tiles]
	if copy(need, r.step.need); s > 0 {
		for t, n := range r.past {
			need[t] += n
		}
	}
	for l := range r.links {
		link := &r.links[l]
		first := s*r.cells + int(link.first)
		if link.dropped {
			r.unneed(link, need, s)
			continue
		}
		if link.bytes == 0 {
			copy(r.left[first:], link.size)
			continue
		}
		for cell, n := range link.size {
			for memory := range r.set.memories {
				r.away[(first+cell)*r.set.memories+memory] = n
			}
		}
	}
}

// unneed takes what a dropped link counts from the needs of a step.
func (r *run) unneed(l *activeLink, need []int32, s int) {
	if s == 0 {
		return // nothing is before the first step
	}
	to := &r.active[l.to]
	for k := range to.tiled.tiles {
		need[int(to.first)+k] -= l.needed(k)
	}
}

// simulate runs all steps.
func (r *run) simulate() bool {
	r.begin()
	for len(r.events) > 0 {
		r.now = r.events[0].at
		for len(r.events) > 0 && r.events[0].at == r.now {
			if e := r.events.Pop(); e.parcel < 0 {
				r.end(e.of)
			} else {
				r.arrived(e.of, int(e.parcel), int(e.memory))
			}
		}
		r.begin()
	}
	for _, end := range r.ends {
		if end == 0 {
			return false
		}
	}
	return true
}

// begin gives ready tiles to free units.
func (r *run) begin() {
	for d := range r.lanes {
		l := &r.lanes[d]
		for l.free > 0 && len(l.queue) > 0 {
			if l.tiles > 0 && int(l.queue[0]>>(tileBits+orderBits)) > l.begun/l.tiles {
				break
			}
			key := l.queue.Pop()
			l.begun++
			i := int32(key>>(tileBits+orderBits))*int32(r.tiles) + int32(key&(1<<tileBits-1))
			ns := r.nsOf(i, d)
			if l.free == r.set.Devices[d].Count {
				l.changed = r.now
			}
			l.free--
			r.events.Push(event{at: r.now + ns, of: i, parcel: -1})
		}
	}
}

// nsOf is the time of an instance on a device.
func (r *run) nsOf(i int32, d int) float64 {
	t := i % int32(r.tiles)
	a := &r.active[r.owner[t]]
	if a.merges >= 0 && t >= a.merges {
		return a.merge[d]
	}
	return a.ns[d]
}

// end notes the end of an instance, and what is ready then.
func (r *run) end(i int32) {
	s, t := int(i)/r.tiles, i%int32(r.tiles)
	d := r.deviceOf(t)
	l := &r.lanes[d]
	if l.free++; l.free == r.set.Devices[d].Count {
		r.span[d] += r.now - l.changed
	}
	r.ends[s] = max(r.ends[s], r.now)
	a := &r.active[r.owner[t]]
	merged := a.merges >= 0 && t >= a.merges
	local := t - a.first
	if merged {
		local = t - a.merges
	} else {
		r.used[d] += a.joules[d] / float64(a.tiled.tiles)
		if a.tiled.next != nil {
			if next := a.tiled.next[local]; next >= 0 {
				r.arrive(s, a.first+next, -1)
			}
			if a.merges >= 0 {
				r.arrive(s, a.merges+a.tiled.region[local], -1)
			}
		}
	}
	for _, o := range a.out {
		if l := &r.links[o]; l.bytes == 0 && !l.dropped && (l.results == merged || a.merges < 0) {
			r.complete(l, s, local)
		}
	}
	for q := range a.parcels {
		if a.parcels[q].results == merged || a.merges < 0 {
			r.dispatch(i, local, a, q)
		}
	}
}

// deviceOf is the device of a tile.
func (r *run) deviceOf(tile int32) int {
	if r.placed == nil {
		return 0
	}
	return int(r.placed[tile])
}

// complete notes the end of a tile in its cell of a link of which nothing moves.
func (r *run) complete(l *activeLink, s int, tile int32) {
	cell := l.first + l.cell(tile)
	at := s*r.cells + int(cell)
	if r.left[at]--; r.left[at] == 0 {
		r.here(l, s, cell, -1)
	}
}

// dispatch sends the part of a tile in a parcel to the memories where it is read.
func (r *run) dispatch(i, tile int32, a *active, parcel int) {
	home, q := r.set.memory[r.placed[i%int32(r.tiles)]], &a.parcels[parcel]
	to := r.to.Of(0)
	clear(to)
	for _, o := range q.links {
		l := &r.links[o]
		to.AddAll(r.readers.Of(l.first + l.cell(tile)))
	}
	r.arrived(i, parcel, home)
	to.Remove(platform.MemoryID(home))
	for m := range to.All() {
		memory := int(m)
		w := &r.set.ways[home*r.set.memories+memory]
		begin := max(r.now, r.out[home], r.into[memory])
		end, busy := begin+w.latency+w.nsPerByte*q.bytes, begin+w.nsPerByte*q.bytes
		if w.engine {
			busy = end
		}
		r.out[home], r.into[memory] = busy, busy
		r.joules += w.joulesPerByte * q.bytes
		r.events.Push(event{at: end, of: i, parcel: int16(parcel), memory: int16(memory)})
	}
}

// arrived counts a tile's part of a parcel in a memory.
func (r *run) arrived(i int32, parcel, memory int) {
	s, t := int(i)/r.tiles, i%int32(r.tiles)
	a := &r.active[r.owner[t]]
	tile := t - a.first
	if a.merges >= 0 && t >= a.merges {
		tile = t - a.merges
	}
	for _, o := range a.parcels[parcel].links {
		l := &r.links[o]
		cell := l.cell(tile)
		if !r.readers.Has(l.first+cell, platform.MemoryID(memory)) {
			continue
		}
		left := &r.away[(s*r.cells+int(l.first+cell))*r.set.memories+memory]
		if *left--; *left == 0 {
			r.here(l, s, l.first+cell, memory)
		}
	}
}

// here counts a cell for the tiles that wait for it in a memory; below zero in any.
func (r *run) here(l *activeLink, s int, cell int32, memory int) {
	if l.edge.carried {
		if s++; s == r.steps {
			return
		}
	}
	to := &r.active[l.to]
	if l.cellOf == nil {
		for k := range int32(to.tiled.tiles) {
			r.arrive(s, to.first+k, memory)
		}
		return
	}
	for _, k := range l.waiting.of(cell - l.first) {
		r.arrive(s, to.first+k, memory)
	}
}

// arrive counts one thing less that a tile waits for, if it waits in this memory.
func (r *run) arrive(s int, tile int32, memory int) {
	if memory >= 0 && r.set.memory[r.placed[tile]] != memory {
		return
	}
	i := int32(s*r.tiles) + tile
	if r.need[i]--; r.need[i] == 0 {
		r.ready(i)
	}
}

// ready puts an instance in the queue of its device.
func (r *run) ready(i int32) {
	s, t := int(i)/r.tiles, i%int32(r.tiles)
	d := r.deviceOf(t)
	if r.nsOf(i, d) < 0 {
		return // it can run nowhere, and the step never ends
	}
	r.lanes[d].queue.Push(queued(uint64(s)<<(tileBits+orderBits) | r.active[r.owner[t]].order<<tileBits | uint64(t)))
}
