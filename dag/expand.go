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
// Contributors with [Task.Merge] have accumulators of several regions, which the named operation
// folds together in place of "add", as many of each region as the first one has.
//
// In a stage that several devices share, the contributors on each device have accumulators of their own, as many as the buffer says, and a tree on
// the device. Then the devices exchange their sums, see [Exchange].
//
// Adjacent regions of a one-dimensional buffer, as of the gradients of several layers in a bucket, go in one exchange behind the last contributor of all, if the same devices contribute and nobody
// uses one of them before.
//
// Everything is fixed by program order, the number of accumulators and the placement of contributors, so the
// sums are the same bits whatever runs them.
//
// Regions reduced into one storage must be equal or disjoint. Nothing else may touch such a
// region before its last contributor, since the contents then depend on the number of
// accumulators. A graph without Reduce is returned as it is.
func Expand(g *Graph) (*Graph, error) { return ExpandShared(g, nil) }

// ExpandShared is Expand for tasks of which several devices may share the stage. stageOf finds this stage by the layer of a task. Nil means that nobody shares
// any.
func ExpandShared(g *Graph, stageOf func(layer string) *Stage) (*Graph, error) {
	return expand(g, nil, stageOf)
}

// expand is [ExpandShared] for a graph with a table of the names of its tasks. Nil means that there is none yet.
func expand(g *Graph, names *nameTable, stageOf func(layer string) *Stage) (*Graph, error) {
	e := expansion{from: g, names: names, stageOf: stageOf}
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
	used        TaskID  // by a task that does not contribute, at first; -1: by none
	groups      []group // by device
	bucket      *bucket // with whose other regions the devices exchange it
}

type expansion struct {
	from       *Graph
	names      *nameTable // of its tasks
	to         *Builder
	stageOf    func(layer string) *Stage
	stage      *Stage // that was found last, of a layer
	layer      string
	device     int // that was found last
	reductions []reduction
	ofAtom     []int32 // reduction that covers the atom, -1: none
	newID      []TaskID
	numbered   [][]BufferID // by buffer and k: accumulator k, as far as it is known; 0: it is not
}

func (e *expansion) findReductions() error {
	g := e.from
	e.ofAtom = slices.Repeat([]int32{-1}, g.NumAtoms())
	for t := range g.Tasks {
		for i, a := range g.Covers(TaskID(t)) {
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
		e.reductions = append(e.reductions, reduction{first: t, access: i, atoms: len(atoms), used: -1})
		for _, a := range atoms {
			e.ofAtom[a] = id
		}
	}
	r := &e.reductions[id]
	if len(atoms) != r.atoms {
		return e.overlap(t, i, id)
	}
	r.last = t
	_, device := e.deviceOf(t)
	r.groupOf(device).members++
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
		for _, a := range g.Covers(TaskID(t)) {
			if a.Mode == Reduce {
				continue
			}
			for _, atom := range g.AtomsOf(a) {
				id := e.ofAtom[atom]
				if id < 0 {
					continue
				}
				r := &e.reductions[id]
				if r.last < TaskID(t) {
					if r.used < 0 {
						r.used = TaskID(t)
					}
					continue
				}
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
	if e.names == nil {
		e.names = &nameTable{seed: e.to.taskNames.seed}
		for t := range g.Tasks {
			e.names.add(e.names.hash(g.Tasks[t].Name), int32(t))
		}
	}
	tasks, buffers := len(g.Tasks), len(g.Buffers)
	for i := range e.reductions {
		r := &e.reductions[i]
		accumulators := e.numberAccumulators(r)
		tasks, buffers = tasks+accumulators-len(r.groups), buffers+accumulators-1
	}
	e.findBuckets() // it compares the numbers of accumulators
	for i := range e.reductions {
		r := &e.reductions[i]
		if len(r.groups) > 1 && r.last == r.bucket.last {
			m := e.exchange(r)
			tasks += m.most()
		}
	}
	e.to.Grow(tasks, buffers)
	for _, buf := range g.Buffers {
		buf.Accumulators = 0
		e.to.addBuffer(buf)
	}
	for _, oc := range g.OpCosts {
		e.to.OpCosts(oc.Op, oc.Costs)
	}
	e.newID, e.numbered = make([]TaskID, len(g.Tasks)), make([][]BufferID, len(g.Buffers))
	for t := range g.Tasks {
		e.newID[t] = e.to.again(e.rewriteTask(TaskID(t)))
		last := 0
		for i, a := range g.Tasks[t].Accesses {
			if a.Mode != Reduce {
				continue
			}
			r := e.reductionOf(TaskID(t), i)
			if r.last == TaskID(t) {
				if last++; last == 1 || g.Tasks[t].Merge == "" {
					e.merge(r)
				}
			}
			if b := r.bucket; len(r.groups) > 1 && b.last == TaskID(t) && !b.done {
				b.done = true
				m := e.exchange(r)
				m.exchange()
			}
		}
	}
}

func (e *expansion) reductionOf(t TaskID, access int) *reduction {
	return &e.reductions[e.ofAtom[e.from.Atoms(t, access)[0]]]
}

func (e *expansion) rewriteTask(t TaskID) Task {
	g := e.from
	task := g.Tasks[t]
	task.Merge = ""
	if len(task.After) > 0 {
		after := make([]TaskID, len(task.After))
		for k, p := range task.After {
			after[k] = e.newID[p]
		}
		task.After = after
	}
	if !slices.ContainsFunc(task.Accesses, func(a Access) bool { return a.Mode == Reduce }) {
		return task
	}
	keyed := task.Shape != "" && task.Shape == shapeKey(&task, g.Buffers)
	task.Accesses = slices.Clone(task.Accesses)
	adds := false
	for i, a := range task.Accesses {
		if a.Mode != Reduce {
			continue
		}
		task.Accesses[i] = e.contribute(t, i)
		adds = adds || task.Accesses[i].Mode == ReadWrite // which the key of the shape tells
		if keyed && task.Accesses[i].Mode == Write {
			// The work was counted as a read and a write of the region.
			task.MovedBytes = max(0, task.MovedBytes-g.RegionBytes(t, i))
		}
	}
	if keyed && adds {
		task.Shape = shapeKey(&task, e.to.graph.Buffers)
	}
	return task
}

// contribute returns the access that replaces the next Reduce of a reduction.
func (e *expansion) contribute(t TaskID, i int) Access {
	a := e.from.Tasks[t].Accesses[i]
	r := e.reductionOf(t, i)
	_, device := e.deviceOf(t)
	g := r.groupOf(device)
	accs := e.accumulators(r, g)
	acc := g.seen * accs / g.members
	a.Mode = ReadWrite
	if g.seen == 0 || (g.seen-1)*accs/g.members != acc {
		a.Mode = Write
	}
	g.seen++
	a.Buffer = e.accumulator(a.Buffer, g.first+acc)
	return a
}

// accumulators is the number of accumulators of a group.
func (e *expansion) accumulators(r *reduction, g *group) int {
	first := &e.from.Tasks[r.first]
	b := first.Accesses[r.access].Buffer
	if first.Merge != "" {
		b = first.Merged()[0][0].Buffer
	}
	return max(1, min(e.from.Buffers[e.from.Storage(b)].Accumulators, g.members))
}

// numberAccumulators numbers the accumulators of all groups. It returns how many there are, the region of the reduction included.
func (e *expansion) numberAccumulators(r *reduction) (all int) {
	for i := range r.groups {
		g := &r.groups[i]
		g.first = all
		all += e.accumulators(r, g)
	}
	return all
}

// accumulator returns accumulator k of a buffer and adds it if it is new. A view gets a view of
// its owner's accumulator.
func (e *expansion) accumulator(b BufferID, k int) BufferID {
	if k == 0 {
		return b
	}
	known := &e.numbered[b]
	for len(*known) <= k {
		*known = append(*known, 0)
	}
	if (*known)[k] == 0 {
		(*known)[k] = e.newAccumulator(b, k)
	}
	return (*known)[k]
}

// newAccumulator is [expansion.accumulator] for one that was not asked for yet.
func (e *expansion) newAccumulator(b BufferID, k int) BufferID {
	buf := e.from.Buffers[b]
	name := fmt.Sprintf("%s.acc%d", buf.Name, k)
	_, taken := e.to.BufferNamed(name)
	switch {
	case taken:
		e.to.fail("buffer %q has the name of accumulator %d of %q; rename it", name, k, buf.Name)
		return b
	case buf.ViewOf != None:
		return e.to.View(name, e.accumulator(buf.ViewOf, k), buf.Shape...)
	}
	return e.to.Buffer(Buffer{Name: name, Shape: buf.Shape, Type: buf.Type, Role: Workspace, Layout: buf.Layout, Versions: buf.Versions})
}

// merging are the tasks of a reduction, behind its last contributor.
func (e *expansion) merging(r *reduction) merging {
	last := &e.from.Tasks[r.last]
	m := merging{e: e, r: r, op: "add", to: e.from.Tasks[r.first].Accesses[r.access].Region, labels: Labels{Layer: last.Labels.Layer, Phase: "reduce"}, priority: last.Priority}
	if last.Merge != "" {
		m.op, m.with = last.Merge, last.Merged()[0][1:]
	}
	m.stage, _ = e.deviceOf(r.last)
	if micro := last.Labels.MicroBatch; micro == e.from.Tasks[r.first].Labels.MicroBatch {
		m.labels.MicroBatch = micro
	}
	return m
}

// merge adds the tasks that fold the accumulators on each device.
func (e *expansion) merge(r *reduction) {
	m := e.merging(r)
	for i := range r.groups {
		g := &r.groups[i]
		m.tree(e.accumulators(r, g), func(i int) (accumulator, device int) { return g.first + i, g.device })
	}
}

// merging adds the tasks of a reduction.
type merging struct {
	e        *expansion
	r        *reduction
	op       string
	to       Region
	with     []Region // that the operation merges, too
	stage    *Stage   // whose devices have the accumulators. Nil means that these have no place.
	labels   Labels
	priority int32
	nodes    [][]group // the groups by node, in an exchange
	key      string    // of the last task with a box
	keyed    struct {
		op  string
		box Box
	}
}

// tree adds the sums of accumulators in pairs, on the device of the one that each task adds to.
func (m *merging) tree(n int, at func(i int) (accumulator, device int)) {
	for s := 1; s < n; s *= 2 {
		for i := 0; i+s < n; i += 2 * s {
			to, device := at(i)
			from, _ := at(i + s)
			m.add(m.to.Box, to, from, device)
		}
	}
}

// add adds one accumulator to another one in a box, or merges them.
func (m *merging) add(box Box, to, from, device int) {
	accesses := make([]Access, 0, 2+2*len(m.with))
	for _, a := range []struct {
		of   int
		mode Mode
	}{{to, ReadWrite}, {from, Read}} {
		accesses = append(accesses, Access{m.accumulator(a.of, box), a.mode})
		for _, r := range m.with {
			accesses = append(accesses, Access{Region{m.e.accumulator(r.Buffer, a.of), r.Box}, a.mode})
		}
	}
	m.task(m.op, box, to, from, device, accesses...)
}

// sum writes the sum of two accumulators to the region of the reduction in a box.
func (m *merging) sum(box Box, a, b, device int) {
	m.task("sum", box, a, b, device, Access{m.accumulator(0, box), Write}, Access{m.accumulator(a, box), Read}, Access{m.accumulator(b, box), Read})
}

func (m *merging) accumulator(i int, box Box) Region {
	return Region{m.e.accumulator(m.to.Buffer, i), box}
}

func (m *merging) task(op string, box Box, to, from, device int, accesses ...Access) {
	buf := &m.e.from.Buffers[m.to.Buffer]
	name := append(appendBox([]byte(buf.Name+".merge"), buf.Shape, box), '.')
	name = strconv.AppendInt(append(strconv.AppendInt(name, int64(to), 10), '+'), int64(from), 10)
	elems := elemsIn(box, buf)
	task := Task{
		Name: string(name), Op: op, Type: buf.Type, Labels: m.labels, Priority: m.priority, Accesses: accesses,
		Flops: float64(elems), MovedBytes: 3 * elems * buf.Type.SizeBytes(),
	}
	for _, r := range m.with {
		of := &m.e.from.Buffers[r.Buffer]
		task.MovedBytes += 3 * elemsIn(r.Box, of) * of.Type.SizeBytes()
	}
	if m.stage != nil {
		task.Placement = m.e.to.PlaceOn(m.stage.Devices[device])
	}
	task.Shape = m.shape(&task)
	m.e.to.setCosts(&task)
	if _, taken := m.e.names.find(m.e.names.hash(task.Name), func(id int32) bool { return m.e.from.Tasks[id].Name == task.Name }); taken {
		m.e.to.fail("task %q is declared twice", task.Name)
	}
	m.e.to.again(task)
}

// shape is the key of a task. Most have the operation of the task before, and boxes of the same extents.
func (m *merging) shape(t *Task) string {
	box := t.Accesses[0].Box
	if box == nil || len(m.with) > 0 {
		return shapeKey(t, m.e.to.graph.Buffers)
	}
	if m.key == "" || m.keyed.op != t.Op || !slices.EqualFunc(box, m.keyed.box, func(r, s Range) bool { return r.Len() == s.Len() }) {
		m.key, m.keyed.op, m.keyed.box = shapeKey(t, m.e.to.graph.Buffers), t.Op, box
	}
	return m.key
}

// elemsIn is the number of elements in a box of a buffer.
func elemsIn(box Box, of *Buffer) int64 {
	if box == nil {
		return of.Elems()
	}
	return box.Elems()
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
