package layerwise

import (
	"math"
	"math/bits"
)

// run is some steps of a network as a list schedule: a unit that is free takes the first of the ready tiles, by step and rank. A tile
// goes to the device that ends it first.
type run struct {
	*step
	steps     int
	now       float64
	need      []int32   // by instance
	left      []int32   // by cell of each step
	done      []float64 // by cell: when it was complete
	homes     []uint64  // by cell: the memories with parts of it
	sent      []float64 // by cell and memory: when its transfer ends; 0 means none
	device    []int8    // by instance, once it is chosen
	events    events
	lanes     []lane    // by device
	out, into []float64 // by memory: when the copy engine is free

	ends   []float64 // by step
	joules float64   // of transfers
	used   []float64 // by device: joules of tiles, and below the time with some unit busy
	span   []float64
}

// lane is the units of a device.
type lane struct {
	queue   []uint64  // heap of ready tiles: step, order and tile
	work    []float64 // ns of ready tiles by step and order, as a tree of sums
	count   []int32   // their numbers, likewise
	free    int
	ends    float64 // of running tiles, summed
	changed float64 // when all units became idle or the first one busy
}

// event is the end of a tile or its arrival in a memory.
type event struct {
	at       float64
	instance int32
	arrives  bool
}

const (
	tileBits  = 24
	orderBits = 16
)

func (p *step) start(steps int) *run {
	r := &run{step: p, steps: steps, ends: make([]float64, steps), used: make([]float64, len(p.set.Devices)), span: make([]float64, len(p.set.Devices))}
	r.need, r.left = make([]int32, steps*p.tiles), make([]int32, steps*p.cells)
	r.done, r.homes, r.device = make([]float64, steps*p.cells), make([]uint64, steps*p.cells), make([]int8, steps*p.tiles)
	memories := len(p.set.Memories)
	if memories > 1 {
		r.sent = make([]float64, steps*p.cells*memories)
		r.out, r.into = make([]float64, memories), make([]float64, memories)
	}
	for d := range p.set.Devices {
		l := lane{free: p.set.Devices[d].Count}
		if len(p.set.Devices) > 1 {
			l.work, l.count = make([]float64, steps*len(p.active)+1), make([]int32, steps*len(p.active)+1)
		}
		r.lanes = append(r.lanes, l)
	}
	for s := range steps {
		copy(r.need[s*p.tiles:], p.need)
		if s > 0 {
			for t, n := range p.past {
				r.need[s*p.tiles+t] += n
			}
		}
		for l := range p.links {
			copy(r.left[s*p.cells+int(p.links[l].first):], p.links[l].size)
		}
	}
	for i, n := range r.need {
		if n == 0 {
			r.ready(int32(i))
		}
	}
	return r
}

// simulate runs all steps.
func (r *run) simulate() bool {
	r.begin()
	for len(r.events) > 0 {
		r.now = r.events[0].at
		for len(r.events) > 0 && r.events[0].at == r.now {
			e := r.events.pop()
			if e.arrives {
				r.enqueue(e.instance)
			} else {
				r.end(e.instance)
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
			key := pop(&l.queue)
			i := int32(key>>(tileBits+orderBits))*int32(r.tiles) + int32(key&(1<<tileBits-1))
			ns := r.nsOf(i, d)
			r.queue(d, i, -ns, -1)
			if l.free == r.set.Devices[d].Count {
				l.changed = r.now
			}
			l.free--
			l.ends += r.now + ns
			r.events.push(event{at: r.now + ns, instance: i})
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

func (r *run) enqueue(i int32) {
	s, t := int(i)/r.tiles, int(i)%r.tiles
	d := int(r.device[i])
	l := &r.lanes[d]
	r.queue(d, i, r.nsOf(i, d), 1)
	push(&l.queue, uint64(s)<<(tileBits+orderBits)|r.active[r.owner[t]].order<<tileBits|uint64(t))
}

// end notes the end of an instance, and what is ready then.
func (r *run) end(i int32) {
	s, t := int(i)/r.tiles, i%int32(r.tiles)
	d := r.device[i]
	l := &r.lanes[d]
	l.ends -= r.now
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
				r.arrive(s, a.first+next)
			}
			if a.merges >= 0 {
				r.arrive(s, a.merges+a.tiled.region[local])
			}
		}
	}
	for _, o := range a.out {
		if link := &r.links[o]; link.results == merged || a.merges < 0 {
			r.complete(link, s, local, d)
		}
	}
}

// complete notes the end of a tile in its cell of a link.
func (r *run) complete(l *activeLink, s int, tile int32, d int8) {
	cell := int32(0)
	if l.cellOf != nil {
		cell = l.cellOf[tile]
	}
	at := s*r.cells + int(l.first+cell)
	r.homes[at] |= 1 << r.set.Devices[d].Memory
	if r.left[at]--; r.left[at] > 0 {
		return
	}
	r.done[at] = r.now
	if l.edge.carried {
		if s++; s == r.steps {
			return
		}
	}
	to := &r.active[l.to]
	if l.cellOf == nil {
		for k := range int32(to.tiled.tiles) {
			r.arrive(s, to.first+k)
		}
		return
	}
	for _, k := range l.waiting.of(cell) {
		r.arrive(s, to.first+k)
	}
}

// arrive counts one thing less that a tile waits for.
func (r *run) arrive(s int, tile int32) {
	i := int32(s*r.tiles) + tile
	if r.need[i]--; r.need[i] == 0 {
		r.ready(i)
	}
}

// ready chooses the device of an instance whose inputs are complete.
func (r *run) ready(i int32) {
	best, least := -1, math.Inf(1)
	for d := range r.lanes {
		ns := r.nsOf(i, d)
		if ns < 0 {
			continue
		}
		end := ns
		if len(r.lanes) > 1 {
			end += max(r.available(i, d), r.gathered(i, d))
		}
		if end < least {
			best, least = d, end
		}
	}
	if best < 0 {
		return // it can run nowhere, and the step never ends
	}
	r.device[i] = int8(best)
	if r.sent == nil {
		r.enqueue(i)
		return
	}
	if at := r.gather(i, best); at > r.now {
		r.events.push(event{at: at, instance: i, arrives: true})
		return
	}
	r.enqueue(i)
}

// queue notes that an instance enters or leaves the ready ones of a device.
func (r *run) queue(d int, i int32, ns float64, count int32) {
	if len(r.lanes) == 1 {
		return
	}
	l := &r.lanes[d]
	for at := r.place(i) + 1; at < len(l.work); at += at & -at {
		l.work[at] += ns
		l.count[at] += count
	}
}

// place is an instance's place among all, by step and order.
func (r *run) place(i int32) int {
	return int(i)/r.tiles*len(r.active) + int(r.active[r.owner[int(i)%r.tiles]].order)
}

// available is about when a unit of a device is free for an instance.
func (r *run) available(i int32, d int) float64 {
	l := &r.lanes[d]
	work, count := 0.0, 0
	for at := r.place(i) + 1; at > 0; at -= at & -at {
		work += l.work[at]
		count += int(l.count[at])
	}
	if l.free > count {
		return r.now
	}
	n := r.set.Devices[d].Count
	return r.now + (work+l.ends-float64(n-l.free)*r.now)/float64(n)
}

// eachInput visits the cells that an instance waits for with data, and the step of each.
func (r *run) eachInput(i int32, visit func(l *activeLink, at int)) {
	s, t := int(i)/r.tiles, i%int32(r.tiles)
	a := &r.active[r.owner[t]]
	if a.merges >= 0 && t >= a.merges {
		return
	}
	for _, in := range a.in {
		l := &r.links[in]
		from := s
		if l.edge.carried {
			from--
		}
		if l.bytes == 0 || from < 0 {
			continue
		}
		if l.cellOf == nil {
			visit(l, from*r.cells+int(l.first))
			continue
		}
		for _, cell := range l.needs.of(t - a.first) {
			visit(l, from*r.cells+int(l.first+cell))
		}
	}
}

// gathered is about when the inputs of an instance can be in the memory of a device.
func (r *run) gathered(i int32, d int) float64 {
	at, memory, memories := r.now, int(r.set.Devices[d].Memory), len(r.set.Memories)
	engine := max(r.now, r.into[memory])
	r.eachInput(i, func(l *activeLink, cell int) {
		if r.homes[cell]&^(1<<memory) == 0 {
			return
		}
		if sent := r.sent[cell*memories+memory]; sent > 0 {
			at = max(at, sent)
			return
		}
		from := r.home(cell, memory)
		w := &r.set.ways[from*memories+memory]
		engine = max(engine, r.out[from]) + w.nsPerByte*l.bytes
		if w.engine {
			engine += w.latency
			at = max(at, engine)
		} else {
			at = max(at, engine+w.latency)
		}
	})
	return at
}

// home is a memory with a part of a cell that another one lacks.
func (r *run) home(cell, memory int) int { return bits.TrailingZeros64(r.homes[cell] &^ (1 << memory)) }

// gather sends the inputs of an instance to the memory of a device, and returns when they are there.
func (r *run) gather(i int32, d int) float64 {
	at, memory, memories := r.now, int(r.set.Devices[d].Memory), len(r.set.Memories)
	r.eachInput(i, func(l *activeLink, cell int) {
		homes := r.homes[cell] &^ (1 << memory)
		if homes == 0 {
			return
		}
		sent := &r.sent[cell*memories+memory]
		if *sent == 0 {
			n := float64(bits.OnesCount64(r.homes[cell]))
			for ; homes != 0; homes &= homes - 1 {
				from := bits.TrailingZeros64(homes)
				w := &r.set.ways[from*memories+memory]
				begin := max(r.now, r.out[from], r.into[memory])
				end := begin + w.latency + w.nsPerByte*l.bytes/n
				if w.engine {
					r.out[from], r.into[memory] = max(r.out[from], end), end
				} else {
					r.out[from], r.into[memory] = begin+w.nsPerByte*l.bytes/n, begin+w.nsPerByte*l.bytes/n
				}
				r.joules += w.joulesPerByte * l.bytes / n
				*sent = max(*sent, end)
			}
		}
		at = max(at, *sent)
	})
	return at
}

// events is a heap by time.
type events []event

func (h *events) push(e event) {
	*h = append(*h, e)
	all := *h
	i := len(all) - 1
	for i > 0 {
		up := (i - 1) / 2
		if all[up].at <= e.at {
			break
		}
		all[i] = all[up]
		i = up
	}
	all[i] = e
}

func (h *events) pop() event {
	all := *h
	first, last := all[0], all[len(all)-1]
	all = all[:len(all)-1]
	*h = all
	i := 0
	for {
		c := 2*i + 1
		if c >= len(all) {
			break
		}
		if c+1 < len(all) && all[c+1].at < all[c].at {
			c++
		}
		if all[c].at >= last.at {
			break
		}
		all[i] = all[c]
		i = c
	}
	if len(all) > 0 {
		all[i] = last
	}
	return first
}

// push and pop keep a heap of numbers.
func push(h *[]uint64, key uint64) {
	*h = append(*h, key)
	all := *h
	i := len(all) - 1
	for i > 0 {
		up := (i - 1) / 2
		if all[up] <= key {
			break
		}
		all[i] = all[up]
		i = up
	}
	all[i] = key
}

func pop(h *[]uint64) uint64 {
	all := *h
	first, last := all[0], all[len(all)-1]
	all = all[:len(all)-1]
	*h = all
	i := 0
	for {
		c := 2*i + 1
		if c >= len(all) {
			break
		}
		if c+1 < len(all) && all[c+1] < all[c] {
			c++
		}
		if all[c] >= last {
			break
		}
		all[i] = all[c]
		i = c
	}
	if len(all) > 0 {
		all[i] = last
	}
	return first
}
