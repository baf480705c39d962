package schedule

import (
	"cmp"
	"slices"
	"time"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule/place"
)

// The replicas of a placed graph live as long as they are used in their memory. Then the memory forgets the contents
// of the origin's storage, though they may be used elsewhere or come back.
// For the schedule of the origin that is an eviction. It is found atom by
// atom along the placed order: a *residence* is one version in one replica.
type residence struct {
	replica dag.BufferID
	memory  platform.MemoryID
	since   time.Duration
	until   time.Duration // end of its last use
	last    int           // number of that passing in the step
	ended   bool          // the replica has come to hold the version again since
}

// dropping is the walk in progress.
type dropping struct {
	pg     *place.Graph
	p      *Problem
	spans  [][]Interval // by step and task
	stays  []bool       // by replica
	passes [][]passing  // by atom of the origin
	drops  map[dropKey][]int32
}

// passing is the use of an atom by a task, in a replica.
type passing struct {
	task    dag.TaskID
	replica dag.BufferID
	brings  bool // a transfer of the version there is
	writes  bool // a new version
}

type dropKey struct {
	at      time.Duration
	memory  platform.MemoryID
	storage dag.BufferID
}

// evictions finds the evictions from limited memories in a schedule of the placed graph, by the times of its tasks
// and transfers in each step.
func evictions(p *Problem, pg *place.Graph, spans [][]Interval) []Eviction {
	body := pg.Body()
	d := &dropping{pg: pg, p: p, stays: make([]bool, len(body.Keeps)), spans: spans,
		passes: make([][]passing, p.Graph.NumAtoms()), drops: map[dropKey][]int32{}}
	for b := range d.stays {
		d.stays[b] = pg.Stays(dag.BufferID(b)) || p.Graph.Versions(pg.BufferOf(dag.BufferID(b))) > 1 || !limited(p.Platform.Memories[pg.MemoryOf(dag.BufferID(b))])
	}
	for t := range dag.TaskID(pg.NumTasks()) {
		m := pg.Move(t)
		copies := m != nil
		body.Each(t, func(replica dag.BufferID, mode dag.Mode, atoms []int32, _ int32) {
			if copies && mode == dag.Write && m.Share.Part+1 < m.Share.Of {
				return // the last share brings the version
			}
			for _, a := range atoms {
				d.passes[a] = append(d.passes[a], passing{task: t, replica: replica, brings: copies && mode == dag.Write, writes: !copies && mode.Writes()})
			}
		})
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

// walk follows the versions of one atom.
func (d *dropping) walk(atom int32, storage dag.BufferID) {
	lastIn := map[dag.BufferID]int{} // last passing in a step, by replica
	for k, p := range d.passes[atom] {
		lastIn[p.replica] = k
	}
	var in []residence // of the present version
	for _, spans := range d.spans {
		for k, p := range d.passes[atom] {
			span := spans[p.task]
			here := slices.IndexFunc(in, func(r residence) bool { return r.replica == p.replica && !r.ended })
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
				in = append(in, residence{replica: p.replica, memory: d.pg.MemoryOf(p.replica), since: since, until: span.End, last: k})
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

// forget records where a version is dropped because its replica is, while another memory
// has it.
func (d *dropping) forget(atom int32, storage dag.BufferID, in []residence, lastIn map[dag.BufferID]int) {
	leaves := func(r *residence) bool { return !d.stays[r.replica] && r.last == lastIn[r.replica] }
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
