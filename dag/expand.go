package dag

import (
	"fmt"
	"slices"
	"strconv"
	"unique"
)

// Expand rewrites every Reduce access into Write and ReadWrite. So planning, memory layout,
// simulation and execution know no reductions.
//
// The contributors of one region, in program order, are cut into contiguous
// blocks, one for each of the Buffer.Accumulators private accumulators (never
// more than there are contributors). The first of a block writes its
// accumulator, the others add to it one after the other. Accumulator 0 is the
// region itself; the others are buffers "<buffer>.acc1", "<buffer>.acc2", …
// A binary tree of ordinary tasks of operation "add" then folds accumulator i+s
// into accumulator i for s = 1, 2, 4, …; for five accumulators
//
//	0+1  2+3   |   0+2   |   0+4
//
// The trees stand in program order right after the last contributor. Their tasks
// are named "<buffer>.merge[box].<i>+<j>", without the box for a whole buffer.
//
// Everything is fixed by program order and the number of accumulators, so the
// sums are the same bits whatever runs them.
//
// Regions reduced into one storage must be equal or disjoint. Nothing else may touch such a
// region before its last contributor, since the contents then depend on the number of
// accumulators. A graph without Reduce is returned as it is.
func Expand(g *Graph) (*Graph, error) {
	e := expansion{from: g}
	if err := e.findReductions(); err != nil {
		return nil, fmt.Errorf("graph %q: %w", g.Name, err)
	}
	if len(e.reductions) == 0 {
		return g, nil
	}
	if err := e.checkOrder(); err != nil {
		return nil, fmt.Errorf("graph %q: %w", g.Name, err)
	}
	e.rewrite()
	return e.to.Build()
}

// reduction is a region and the accesses that reduce into it.
type reduction struct {
	first, last TaskID // contributors
	access      int    // of first: how the region is named
	atoms       int
	members     int
	seen        int // contributors rewritten so far
}

type expansion struct {
	from       *Graph
	to         *Builder
	reductions []reduction
	ofAtom     []int32 // reduction that covers the atom, -1: none
	newID      []TaskID
}

func (e *expansion) findReductions() error {
	g := e.from
	e.ofAtom = slices.Repeat([]int32{-1}, g.NumAtoms())
	for t := range g.Tasks {
		for i, a := range g.Tasks[t].Accesses {
			if a.Mode != Reduce {
				continue
			}
			if err := e.join(TaskID(t), i); err != nil {
				return err
			}
		}
	}
	return nil
}

// join makes an access a member of the reduction of its region.
func (e *expansion) join(t TaskID, i int) error {
	atoms := e.from.Atoms(t, i)
	id := e.ofAtom[atoms[0]]
	for _, a := range atoms {
		if other := e.ofAtom[a]; other != id {
			return e.overlap(t, i, max(other, id))
		}
	}
	if id < 0 {
		id = int32(len(e.reductions))
		e.reductions = append(e.reductions, reduction{first: t, access: i, atoms: len(atoms)})
		for _, a := range atoms {
			e.ofAtom[a] = id
		}
	}
	r := &e.reductions[id]
	if len(atoms) != r.atoms {
		return e.overlap(t, i, id)
	}
	r.last = t
	r.members++
	return nil
}

func (e *expansion) overlap(t TaskID, i int, id int32) error {
	g, r := e.from, &e.reductions[id]
	return fmt.Errorf("tasks %q and %q reduce into %s and %s, which overlap without being equal; split the reduction so that regions are equal or disjoint",
		g.Tasks[r.first].Name, g.Tasks[t].Name, g.regionName(r.first, r.access), g.regionName(t, i))
}

// checkOrder refuses a task that uses a region before the region's last contributor.
func (e *expansion) checkOrder() error {
	g := e.from
	for t := range g.Tasks {
		for i, a := range g.Tasks[t].Accesses {
			if a.Mode == Reduce {
				continue
			}
			for _, atom := range g.Atoms(TaskID(t), i) {
				id := e.ofAtom[atom]
				if id < 0 || e.reductions[id].last < TaskID(t) {
					continue
				}
				r := &e.reductions[id]
				return fmt.Errorf("task %q has %s access to %s before its last contributor, task %q; the sum exists only after that",
					g.Tasks[t].Name, a.Mode, g.regionName(r.first, r.access), g.Tasks[r.last].Name)
			}
		}
	}
	return nil
}

func (e *expansion) rewrite() {
	g := e.from
	e.to = NewBuilder(g.Name)
	merges := 0
	for i := range e.reductions {
		merges += e.accumulators(&e.reductions[i]) - 1
	}
	e.to.Grow(len(g.Tasks) + merges)
	for _, buf := range g.Buffers {
		buf.Accumulators = 0
		e.to.addBuffer(buf)
	}
	for _, oc := range g.OpCosts {
		e.to.OpCosts(oc.Op, oc.Costs)
	}
	e.newID = make([]TaskID, len(g.Tasks))
	for t := range g.Tasks {
		e.newID[t] = e.to.Task(e.rewriteTask(TaskID(t)))
		for i, a := range g.Tasks[t].Accesses {
			if a.Mode != Reduce {
				continue
			}
			if r := &e.reductions[e.ofAtom[g.Atoms(TaskID(t), i)[0]]]; r.last == TaskID(t) {
				e.merge(r)
			}
		}
	}
}

func (e *expansion) rewriteTask(t TaskID) Task {
	g := e.from
	task := g.Tasks[t]
	if len(task.After) > 0 {
		after := make([]TaskID, len(task.After))
		for k, p := range task.After {
			after[k] = e.newID[p]
		}
		task.After = after
	}
	keyed := task.Shape != "" && task.Shape == shapeKey(&task, g.Buffers)
	shared := true
	for i, a := range task.Accesses {
		if a.Mode != Reduce {
			continue
		}
		if shared {
			task.Accesses, shared = append([]Access(nil), task.Accesses...), false
		}
		task.Accesses[i] = e.contribute(t, i)
		if keyed && task.Accesses[i].Mode == Write {
			// The work was counted as a read and a write of the region.
			task.MovedBytes = max(0, task.MovedBytes-g.RegionBytes(t, i))
		}
	}
	if keyed && !shared {
		task.Shape = shapeKey(&task, e.to.graph.Buffers)
	}
	return task
}

// contribute returns the access that replaces the next Reduce of a reduction.
func (e *expansion) contribute(t TaskID, i int) Access {
	a := e.from.Tasks[t].Accesses[i]
	r := &e.reductions[e.ofAtom[e.from.Atoms(t, i)[0]]]
	accs := e.accumulators(r)
	acc := r.seen * accs / r.members
	a.Mode = ReadWrite
	if r.seen == 0 || (r.seen-1)*accs/r.members != acc {
		a.Mode = Write
	}
	r.seen++
	a.Buffer = e.accumulator(a.Buffer, acc)
	return a
}

// accumulators is the number of accumulators of a reduction, its region included.
func (e *expansion) accumulators(r *reduction) int {
	b := e.from.Tasks[r.first].Accesses[r.access].Buffer
	return max(1, min(e.from.Buffers[e.from.Storage(b)].Accumulators, r.members))
}

// accumulator returns accumulator k of a buffer and adds it if it is new. A view gets a view of
// its owner's accumulator.
func (e *expansion) accumulator(b BufferID, k int) BufferID {
	if k == 0 {
		return b
	}
	buf := e.from.Buffers[b]
	name := fmt.Sprintf("%s.acc%d", buf.Name, k)
	id, ok := e.to.BufferNamed(name)
	switch {
	case ok && int(id) < len(e.from.Buffers):
		e.to.fail("buffer %q has the name of accumulator %d of %q; rename it", name, k, buf.Name)
		return b
	case ok:
		return id
	case buf.ViewOf != None:
		return e.to.View(name, e.accumulator(buf.ViewOf, k), buf.Shape...)
	}
	return e.to.Buffer(Buffer{Name: name, Shape: buf.Shape, Type: buf.Type, Role: Workspace, Layout: buf.Layout, Versions: buf.Versions})
}

// merge adds the tree that folds the accumulators of a reduction into its region.
func (e *expansion) merge(r *reduction) {
	g := e.from
	a := g.Tasks[r.first].Accesses[r.access]
	buf := &g.Buffers[a.Buffer]
	bytes := g.RegionBytes(r.first, r.access)
	prefix := string(appendBox([]byte(buf.Name+".merge"), buf.Shape, a.Box))
	accs := e.accumulators(r)
	labels := Labels{Layer: g.Tasks[r.last].Labels.Layer, Phase: "reduce"}
	if micro := g.Tasks[r.last].Labels.MicroBatch; micro == g.Tasks[r.first].Labels.MicroBatch {
		labels.MicroBatch = micro
	}
	for s := 1; s < accs; s *= 2 {
		for i := 0; i+s < accs; i += 2 * s {
			task := Task{
				Name:   fmt.Sprintf("%s.%d+%d", prefix, i, i+s),
				Op:     "add",
				Type:   buf.Type,
				Labels: labels,
				Accesses: []Access{
					{Region{e.accumulator(a.Buffer, i), a.Box}, ReadWrite},
					{Region{e.accumulator(a.Buffer, i+s), a.Box}, Read},
				},
				Priority:   g.Tasks[r.last].Priority,
				Flops:      float64(bytes / buf.Type.SizeBytes()),
				MovedBytes: 3 * bytes,
			}
			task.Shape = shapeKey(&task, e.to.graph.Buffers)
			e.to.Task(task)
		}
	}
}

// shapeKey is the [ShapeKey] of a task.
func shapeKey(t *Task, buffers []Buffer) string {
	var own []int // of a box
	key := ShapeKey(len(t.Accesses), func(i int) ([]int, Mode) {
		a := &t.Accesses[i]
		if a.Box == nil {
			return buffers[a.Buffer].Shape, a.Mode
		}
		own = own[:0]
		for _, r := range a.Box {
			own = append(own, r.Len())
		}
		return own, a.Mode
	}, t.Params)
	return unique.Make(key).Value() // equal keys share one string
}

// ShapeKey is the key under which performance models know a call: the extents of its operands, "+" after one that is read
// and written, then the parameters by name.
func ShapeKey(operands int, operand func(i int) ([]int, Mode), params Params) string {
	key := make([]byte, 0, 128)
	for i := range operands {
		if i > 0 {
			key = append(key, ';')
		}
		shape, mode := operand(i)
		for d, e := range shape {
			if d > 0 {
				key = append(key, 'x')
			}
			key = strconv.AppendInt(key, int64(e), 10)
		}
		if mode == ReadWrite {
			key = append(key, '+')
		}
	}
	for _, p := range sortedBy(params, func(p Param) string { return p.Name }) {
		key = append(append(append(key, ' '), p.Name...), '=')
		key = strconv.AppendFloat(key, p.Value, 'g', -1, 64)
	}
	return string(key)
}
