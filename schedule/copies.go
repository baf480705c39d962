package schedule

import (
	"fmt"
	"slices"

	"dahl/dag"
	"dahl/platform"
)

// copies are the movements in flight. Each moves atoms of one storage from one
// memory to another, for one task, and is shared by all that wait for them.
type copies struct {
	p        *Problem
	resident *residency
	inFlight []*flight // by CopyID; entries are reused
	free     []CopyID
	carrying map[arrival]CopyID
	batch    []CopyID // started by the fetch in progress
}

type flight struct {
	Transfer
	waiters []Instance
}

// arrival is an atom on its way to a memory.
type arrival struct {
	atom   int32
	memory platform.MemoryID
}

func newCopies(p *Problem, r *residency) *copies {
	return &copies{p: p, resident: r, carrying: map[arrival]CopyID{}}
}

// fetch starts to move what an instance reads and a memory lacks, and returns
// the number of copies it has to wait for.
func (c *copies) fetch(i Instance, m platform.MemoryID) (waits int32, err error) {
	c.batch = c.batch[:0]
	c.resident.missing(i.Task, m, func(atom int32, regionBytes int64) {
		if err != nil {
			return
		}
		var id CopyID
		if id, err = c.want(i, atom, m, regionBytes); err != nil {
			return
		}
		f := c.inFlight[id]
		if n := len(f.waiters); n == 0 || f.waiters[n-1] != i {
			f.waiters = append(f.waiters, i)
			waits++
		}
	})
	if err == nil {
		err = c.resident.overfull(m)
	}
	if err != nil {
		return 0, fmt.Errorf("task %q: %w", c.p.Graph.Tasks[i.Task].Name, err)
	}
	return waits, nil
}

// push starts to move atoms that an instance will read, as far as they fit; it
// need not be ready.
func (c *copies) push(i Instance, atoms []int32, m platform.MemoryID) error {
	c.batch = c.batch[:0]
	var bytes int64
	for _, a := range atoms {
		bytes += c.p.Graph.AtomBytes(dag.AtomID(a))
	}
	for _, a := range atoms {
		r := c.resident
		if (r.valid[a]|r.arriving[a])&(1<<m) != 0 || !r.fits(m, c.p.Graph.AtomBytes(dag.AtomID(a))) {
			continue
		}
		if _, err := c.want(i, a, m, bytes); err != nil {
			return fmt.Errorf("task %q: %w", c.p.Graph.Tasks[i.Task].Name, err)
		}
	}
	return nil
}

// want returns the copy that brings an atom to a memory, starting one if there is none.
func (c *copies) want(i Instance, atom int32, m platform.MemoryID, regionBytes int64) (CopyID, error) {
	r, g := c.resident, c.p.Graph
	if r.arriving[atom]&(1<<m) != 0 {
		return c.carrying[arrival{atom, m}], nil
	}
	storage := g.AtomStorage(dag.AtomID(atom))
	if r.valid[atom] == 0 {
		return 0, fmt.Errorf("it reads buffer %q, which nothing has written; give the buffer a home", g.Buffers[storage].Name)
	}
	id, err := c.batchCopy(i, storage, r.source(atom, m, regionBytes), m)
	if err != nil {
		return 0, err
	}
	f, bytes := c.inFlight[id], g.AtomBytes(dag.AtomID(atom))
	f.Atoms = append(f.Atoms, atom)
	f.Bytes += bytes
	r.arriving[atom] |= 1 << m
	r.live[m] += bytes
	c.carrying[arrival{atom, m}] = id
	return id, nil
}

// batchCopy finds the copy of this fetch for a storage and a source, or opens it.
func (c *copies) batchCopy(i Instance, storage dag.BufferID, from, to platform.MemoryID) (CopyID, error) {
	for _, id := range c.batch {
		if f := c.inFlight[id]; f.Buffer == storage && f.From == from {
			return id, nil
		}
	}
	if _, ok := c.p.Platform.Route(from, to); !ok {
		ms := c.p.Platform.Memories
		return 0, fmt.Errorf("buffer %q has to move from memory %q to %q, and platform %q has no route between them",
			c.p.Graph.Buffers[storage].Name, ms[from].Name, ms[to].Name, c.p.Platform.Name)
	}
	id := CopyID(len(c.inFlight))
	if n := len(c.free); n > 0 {
		id, c.free = c.free[n-1], c.free[:n-1]
	} else {
		c.inFlight = append(c.inFlight, &flight{})
	}
	f := c.inFlight[id]
	f.Transfer = Transfer{Buffer: storage, Atoms: f.Atoms[:0], From: from, To: to, For: i.Task, Step: i.Step}
	f.waiters = f.waiters[:0]
	c.batch = append(c.batch, id)
	return id, nil
}

// arrive makes the atoms of a copy valid and returns who waited for them. The
// copy's ID is free for the next one.
func (c *copies) arrive(id CopyID) []Instance {
	f := c.inFlight[id]
	for _, a := range f.Atoms {
		key := arrival{a, f.To}
		if c.carrying[key] != id || c.resident.arriving[a]&(1<<f.To) == 0 {
			continue // overwritten or freed meanwhile: the task ran elsewhere after all
		}
		c.resident.arriving[a] &^= 1 << f.To
		c.resident.valid[a] |= 1 << f.To
		delete(c.carrying, key)
	}
	c.free = append(c.free, id)
	return f.waiters
}

// pushes lists, for a plan, what to move as soon as it is written.
type pushes struct {
	byWriter [][]pushTo // by task; the last entry is what is there before the first step
}

// pushTo is atoms that a reader of the same step or of the next one will need.
type pushTo struct {
	reader   dag.TaskID
	nextStep bool
	atoms    []int32
}

// newPushes finds the readers of every value, in the order in which each writer
// should serve them: this step before the next, then by position in the plan,
// then by name.
func newPushes(g *dag.Graph, position []int32) *pushes {
	n := len(g.Tasks)
	p := &pushes{byWriter: make([][]pushTo, n+1)}
	last := make([]int32, g.NumAtoms())
	for a := range last {
		last[a] = int32(n)
	}
	for _, next := range []bool{false, true} {
		for t := range n {
			for i, a := range g.Tasks[t].Accesses {
				for _, atom := range g.Atoms(dag.TaskID(t), i) {
					// The second pass adds only values that the step before left.
					if writer := last[atom]; a.Mode.Reads() && writer >= 0 && (!next || int(writer) < n) {
						p.add(last[atom], dag.TaskID(t), next, atom)
					}
				}
			}
			for i, a := range g.Tasks[t].Accesses {
				if !a.Mode.Writes() {
					continue
				}
				for _, atom := range g.Atoms(dag.TaskID(t), i) {
					last[atom] = int32(t)
					if next {
						last[atom] = -1 // written in this very step: the first pass has seen it
					}
				}
			}
		}
	}
	for _, list := range p.byWriter {
		slices.SortStableFunc(list, func(a, b pushTo) int {
			return comparePush(g, position, &a, &b)
		})
	}
	return p
}

func comparePush(g *dag.Graph, position []int32, a, b *pushTo) int {
	if a.nextStep != b.nextStep {
		if a.nextStep {
			return 1
		}
		return -1
	}
	if d := position[a.reader] - position[b.reader]; d != 0 {
		return int(d)
	}
	return int(g.Rank(a.reader) - g.Rank(b.reader))
}

func (p *pushes) add(writer int32, reader dag.TaskID, next bool, atom int32) {
	list := p.byWriter[writer]
	if k := len(list) - 1; k >= 0 && list[k].reader == reader && list[k].nextStep == next {
		list[k].atoms = append(list[k].atoms, atom)
		return
	}
	p.byWriter[writer] = append(list, pushTo{reader, next, []int32{atom}})
}
