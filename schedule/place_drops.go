package schedule

import (
	"cmp"
	"slices"
	"time"

	"dahl/dag"
	"dahl/platform"
)

// The instances of a placed graph live as long as they are used where they are; what the
// origin's storage holds there is forgotten afterwards, though it may be used elsewhere
// or come back. For the schedule of the origin that is an eviction. It is found atom by
// atom along the placed order: a *residence* is one version in one instance.
type residence struct {
	instance dag.BufferID
	memory   platform.MemoryID
	since    time.Duration
	until    time.Duration // end of its last use
	last     int           // which passing that is, in the step
	ended    bool          // the instance has come to hold the version again since
}

// dropping is the walk in progress.
type dropping struct {
	pg     *PlacedGraph
	p      *Problem
	spans  [][]Interval // by step and task
	stays  []bool       // by instance
	passes [][]passing  // by atom of the origin
	drops  map[dropKey][]int32
}

// passing is what a task does with an atom, in an instance.
type passing struct {
	task     dag.TaskID
	instance dag.BufferID
	brings   bool // a copy of the version there is
	writes   bool // a new version
}

type dropKey struct {
	at      time.Duration
	memory  platform.MemoryID
	storage dag.BufferID
}

// evictions finds what leaves memories that are limited, in a schedule of the placed graph.
func (pg *PlacedGraph) evictions(p *Problem, s *Schedule) []Eviction {
	limited := func(m platform.Memory) bool { return m.CapacityBytes > 0 }
	if !slices.ContainsFunc(p.Platform.Memories, limited) {
		return nil
	}
	d := &dropping{pg: pg, p: p, stays: make([]bool, len(pg.Graph.Buffers)), spans: make([][]Interval, s.Steps),
		passes: make([][]passing, p.Graph.NumAtoms()), drops: map[dropKey][]int32{}}
	for step := range d.spans {
		d.spans[step] = make([]Interval, len(pg.Graph.Tasks))
	}
	for _, span := range s.Spans {
		d.spans[span.Step][span.Task] = Interval{span.Start, span.End}
	}
	written := pg.Graph.WrittenStorages()
	for b := range d.stays {
		d.stays[b] = pg.Graph.Carried(dag.BufferID(b)) || !written[b] || !limited(p.Platform.Memories[pg.Memory[b]])
	}
	for t := range pg.Graph.Tasks {
		d.pass(dag.TaskID(t))
	}
	everywhere := p.Graph.WrittenStorages()
	for a := range d.passes {
		storage := p.Graph.AtomStorage(dag.AtomID(a))
		if everywhere[storage] || p.Graph.Buffers[storage].Home != "" {
			d.walk(int32(a), storage)
		}
	}
	return d.list()
}

// pass notes what a task does with atoms.
func (d *dropping) pass(t dag.TaskID) {
	g := d.pg.Graph
	if m := d.pg.Moves[t]; m != nil {
		from, to := g.Storage(m.Pairs[0].From.Buffer), g.Storage(m.Pairs[0].To.Buffer)
		for _, a := range m.Atoms {
			d.passes[a] = append(d.passes[a], passing{task: t, instance: from}, passing{task: t, instance: to, brings: true})
		}
		return
	}
	origin := d.pg.TaskOf[t]
	for i, a := range d.pg.Origin.Tasks[origin].Accesses {
		instance := g.Storage(g.Tasks[t].Accesses[i].Buffer)
		for _, atom := range d.pg.Origin.Atoms(origin, i) {
			d.passes[atom] = append(d.passes[atom], passing{task: t, instance: instance, writes: a.Mode.Writes()})
		}
	}
}

// walk follows the versions of one atom.
func (d *dropping) walk(atom int32, storage dag.BufferID) {
	lastIn := map[dag.BufferID]int{} // last passing in a step, by instance
	for k, p := range d.passes[atom] {
		lastIn[p.instance] = k
	}
	var in []residence // of the present version
	for _, spans := range d.spans {
		for k, p := range d.passes[atom] {
			span := spans[p.task]
			here := slices.IndexFunc(in, func(r residence) bool { return r.instance == p.instance && !r.ended })
			if here >= 0 && p.brings {
				in[here].ended, here = true, -1
			}
			if p.writes {
				d.forget(atom, storage, in, lastIn)
				in, here = in[:0], -1
			}
			if here < 0 {
				since := span.End
				if !p.writes && !p.brings {
					since = 0 // it was there before the run
				}
				in = append(in, residence{instance: p.instance, memory: d.pg.Memory[p.instance], since: since, until: span.End, last: k})
				continue
			}
			in[here].until, in[here].last = max(in[here].until, span.End), k
		}
		if !d.p.Graph.Carried(storage) {
			d.forget(atom, storage, in, lastIn)
			in = in[:0]
		}
	}
	d.forget(atom, storage, in, lastIn)
}

// forget records where a version is dropped because its instance is, while another memory
// has it.
func (d *dropping) forget(atom int32, storage dag.BufferID, in []residence, lastIn map[dag.BufferID]int) {
	leaves := func(r *residence) bool { return !d.stays[r.instance] && r.last == lastIn[r.instance] }
	holds := func(r *residence, at time.Duration, not platform.MemoryID) bool {
		return r.memory != not && r.since <= at && (!leaves(r) || r.until > at || r.until == at && r.memory > not)
	}
	for i := range in {
		r := &in[i]
		if leaves(r) && slices.ContainsFunc(in, func(other residence) bool { return holds(&other, r.until, r.memory) }) {
			key := dropKey{r.until, r.memory, storage}
			d.drops[key] = append(d.drops[key], atom)
		}
	}
}

// list turns the drops into evictions.
func (d *dropping) list() []Eviction {
	all := make([]Eviction, 0, len(d.drops))
	for key, atoms := range d.drops {
		e := Eviction{Buffer: key.storage, Atoms: atoms, Memory: key.memory, At: key.at}
		for _, a := range atoms {
			e.Bytes += d.p.Graph.AtomBytes(dag.AtomID(a))
		}
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b Eviction) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Memory, b.Memory), cmp.Compare(a.Buffer, b.Buffer))
	})
	return all
}
