package policy

import (
	"cmp"
	"slices"
	"time"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule"
)

// heftTransfers times the transfers of a plan in the making, where there are several memories.
//
// It knows for every atom which memories have it and from when on. A task is placed after all its predecessors, so
// the version written last is the one that the next task reads. The transfers are the same as package place will
// make. Each moves from the memory of its writer to another one, once to each, and brings all atoms of one storage
// and one writer that the first reader there needs. Where copy engines are limited, a transfer takes the first gap of
// an engine that is long enough, as a task does on a worker (O. Sinnen, L. Sousa,
// Communication contention in task scheduling, IEEE Transactions on Parallel and Distributed
// Systems 16(6), 2005). Links count as free.
type heftTransfers struct {
	p       *schedule.Problem
	valid   platform.FewSets // by atom: memories that have it or will have it
	of      []heftAtom       // by atom
	in, out [][]heftEngine   // by memory: its engines; empty means no limit
	wanted  []heftTransfer   // transfers for the task and the memory of the last inquiry
	last    heftInquiry      // settled where its answer holds no more
	arrives time.Duration    // the answer, with a route
	routed  bool
	inquiry int64 // number of inquiries so far
}

// heftAtom is the latest version of an atom.
type heftAtom struct {
	at       []arrival         // ascending by memory: from when on it is there, if not from the beginning
	inquired int64             // the last inquiry that wanted it
	writer   dag.TaskID        // -1: its contents are from before the step
	source   platform.MemoryID // memory of its writer, or home; eachHost: the host memory of the node that reads it
}

// heftTransfer is one transfer, with the engines and times found for it.
type heftTransfer struct {
	storage    dag.BufferID
	writer     dag.TaskID
	from       platform.MemoryID
	atoms      []int32
	bytes      int64
	start, end time.Duration
	engines    []*heftEngine
}

// heftInquiry asks when a memory has the operands of a task, if nothing moves before a moment. The answer holds until something moves or is written.
type heftInquiry struct {
	task   dag.TaskID
	memory platform.MemoryID
	from   time.Duration
}

// heftEngine is a copy engine. Its timeline has the transfers for tasks that are placed, and until is the end of its
// transfers for the task at hand.
type heftEngine struct {
	timeline
	until   time.Duration
	inquiry int64 // the inquiry for which until holds
}

// newHEFTTransfers is nil where there is one memory.
func newHEFTTransfers(p *schedule.Problem) *heftTransfers {
	g, n := p.Graph, len(p.Platform.Memories)
	if n == 1 {
		return nil
	}
	c := &heftTransfers{p: p, valid: p.Platform.NewFewSets(g.NumAtoms()), of: make([]heftAtom, g.NumAtoms()),
		last: settled, in: make([][]heftEngine, n), out: make([][]heftEngine, n)}
	for m := range n {
		if !p.Platform.IsHost(platform.MemoryID(m)) {
			in, out := p.Platform.CopyEngines(platform.MemoryID(m))
			c.in[m], c.out[m] = make([]heftEngine, in), make([]heftEngine, out)
		}
	}
	room := make([]arrival, fewArrivals*len(c.of))
	for a := range c.of {
		c.of[a].at = room[fewArrivals*a : fewArrivals*a : fewArrivals*(a+1)]
	}
	written := g.WrittenStorages()
	for b := range g.Buffers {
		storage := dag.BufferID(b)
		if g.Storage(storage) != storage {
			continue
		}
		start, err := schedule.InitialOf(p, storage, written[storage])
		home, homes := start.Home, start.Homes(p.Platform)
		if start.EachHost {
			home = eachHost
		}
		for a, end := g.StorageAtoms(storage); a < end; a++ {
			c.of[a].writer, c.of[a].source = -1, home
			if err != nil || len(homes) == 0 {
				c.valid.Everywhere(int32(a))
				continue
			}
			for _, m := range homes {
				c.valid.Add(int32(a), m)
			}
		}
	}
	return c
}

// arrive is the time at which a memory has all operands of a task, if nothing moves for them before a moment. Without
// a route, ok is false.
func (c *heftTransfers) arrive(t dag.TaskID, m platform.MemoryID, from time.Duration) (at time.Duration, ok bool) {
	if c == nil {
		return 0, true
	}
	if is := (heftInquiry{t, m, from}); is != c.last {
		c.last = is
		c.arrives, c.routed = c.find(t, m, from)
	}
	return c.arrives, c.routed
}

// settled is no inquiry.
var settled = heftInquiry{task: -1}

// find finds what [heftTransfers.arrive] answers, and the transfers.
func (c *heftTransfers) find(t dag.TaskID, m platform.MemoryID, from time.Duration) (at time.Duration, ok bool) {
	g := c.p.Graph
	c.wanted = c.wanted[:0]
	c.inquiry++
	for _, access := range g.Covers(t) {
		if !access.Mode.Reads() {
			continue
		}
		for _, a := range g.AtomsOf(access) {
			switch {
			case c.valid.IsEverywhere(a):
			case c.valid.Has(a, m):
				at = max(at, c.arrived(a, m))
			default:
				c.want(a, access.Storage, c.sourceOf(a, m), from)
			}
		}
	}
	slices.SortStableFunc(c.wanted, func(a, b heftTransfer) int { return cmp.Compare(a.start, b.start) })
	for k := range c.wanted {
		if _, routed := c.p.Platform.Route(c.wanted[k].from, m); !routed {
			return 0, false
		}
		c.fit(&c.wanted[k], m)
		at = max(at, c.wanted[k].end)
	}
	return at, true
}

// fewArrivals is how many most atoms have.
const fewArrivals = 2

// arrival is the moment from which on a memory has an atom.
type arrival struct {
	memory platform.MemoryID
	at     time.Duration
}

// entry is the place of a memory among the arrivals of an atom.
func (c *heftTransfers) entry(a int32, m platform.MemoryID) (i int, known bool) {
	return slices.BinarySearchFunc(c.of[a].at, m, func(of arrival, m platform.MemoryID) int { return int(of.memory - m) })
}

// arrived is the moment from which on a memory has an atom.
func (c *heftTransfers) arrived(a int32, m platform.MemoryID) time.Duration {
	if i, known := c.entry(a, m); known {
		return c.of[a].at[i].at
	}
	return 0
}

// eachHost is the source of what the host memory of each node has before the step.
const eachHost = -1

// sourceOf is the memory from which an atom goes to another one.
func (c *heftTransfers) sourceOf(a int32, m platform.MemoryID) platform.MemoryID {
	if c.of[a].source == eachHost {
		return c.p.Platform.HostOf(m)
	}
	return c.of[a].source
}

// want adds an atom to the transfers. A transfer starts when its last atom has been written.
func (c *heftTransfers) want(a int32, storage dag.BufferID, source platform.MemoryID, from time.Duration) {
	if c.of[a].inquired == c.inquiry {
		return
	}
	c.of[a].inquired = c.inquiry
	k := len(c.wanted) - 1 // mostly the last one
	for k >= 0 && (c.wanted[k].storage != storage || c.wanted[k].writer != c.of[a].writer) {
		k--
	}
	if k < 0 {
		k = len(c.wanted)
		w := heftTransfer{storage: storage, writer: c.of[a].writer, from: source, start: from}
		if k < cap(c.wanted) { // take over the room of an earlier one
			old := &c.wanted[:k+1][k]
			w.atoms, w.engines = old.atoms[:0], old.engines[:0]
		}
		c.wanted = append(c.wanted, w)
	}
	w := &c.wanted[k]
	w.atoms, w.bytes = append(w.atoms, a), w.bytes+c.p.Graph.AtomBytes(dag.AtomID(a))
	w.start = max(w.start, c.arrived(a, w.from))
}

// fit delays a transfer until all its engines are free.
func (c *heftTransfers) fit(w *heftTransfer, m platform.MemoryID) {
	in, out := c.p.Platform.EnginesTaken(w.from, m)
	takes := c.p.Platform.RouteTime(w.from, m, w.bytes)
	for settled := false; !settled; {
		before := w.start
		w.engines = w.engines[:0]
		if in {
			c.engage(c.in[m], w, takes)
		}
		if out {
			c.engage(c.out[w.from], w, takes)
		}
		settled = w.start == before
	}
	w.end = w.start + takes
	for _, e := range w.engines {
		e.until, e.inquiry = w.end, c.inquiry
	}
}

// engage finds the engine that is free soonest and delays the transfer until then.
func (c *heftTransfers) engage(engines []heftEngine, w *heftTransfer, takes time.Duration) {
	var best *heftEngine
	soonest := time.Duration(0)
	for k := range engines {
		e, from := &engines[k], w.start
		if e.inquiry == c.inquiry {
			from = max(from, e.until)
		}
		if start, _ := e.gap(from, takes); best == nil || start < soonest {
			best, soonest = e, start
		}
	}
	w.start, w.engines = soonest, append(w.engines, best)
}

// place settles the memory of a task, and with it the transfers for the task.
func (c *heftTransfers) place(t dag.TaskID, m platform.MemoryID, end time.Duration) {
	c.fetch(t, m, 0)
	c.wrote(t, m, end)
}

// fetch settles the transfers of a task's operands to a memory, as [heftTransfers.arrive] has them.
func (c *heftTransfers) fetch(t dag.TaskID, m platform.MemoryID, from time.Duration) (at time.Duration, ok bool) {
	at, ok = c.arrive(t, m, from)
	if c == nil || !ok {
		return at, ok
	}
	c.last = settled
	for k := range c.wanted {
		w := &c.wanted[k]
		for _, e := range w.engines {
			_, at := e.gap(w.start, w.end-w.start)
			e.insert(at, slotOf{w.start, w.end, t})
		}
		for _, a := range w.atoms {
			c.valid.Add(a, m)
			i, _ := c.entry(a, m)
			c.of[a].at = slices.Insert(c.of[a].at, i, arrival{m, w.end})
		}
	}
	return at, true
}

// wrote notes that the results of a task are in a memory from a moment on, and nowhere else.
func (c *heftTransfers) wrote(t dag.TaskID, m platform.MemoryID, end time.Duration) {
	if c == nil {
		return
	}
	c.last = settled
	g := c.p.Graph
	for _, access := range g.Covers(t) {
		if !access.Mode.Writes() {
			continue
		}
		for _, a := range g.AtomsOf(access) {
			c.valid.Only(a, m)
			c.of[a].writer, c.of[a].source = t, m
			c.of[a].at = append(c.of[a].at[:0], arrival{m, end})
		}
	}
}

// missing is the number of bytes of a task's operands that a memory lacks at a moment.
func (c *heftTransfers) missing(t dag.TaskID, m platform.MemoryID, now time.Duration) (bytes int64) {
	if c == nil {
		return 0
	}
	g := c.p.Graph
	for _, access := range g.Covers(t) {
		if !access.Mode.Reads() {
			continue
		}
		for _, a := range g.AtomsOf(access) {
			if !c.valid.Has(a, m) || !c.valid.IsEverywhere(a) && c.arrived(a, m) > now {
				bytes += g.AtomBytes(dag.AtomID(a))
			}
		}
	}
	return bytes
}
