package nn

import (
	"fmt"
	"maps"
	"slices"

	"dahl/dag"
	"dahl/kernels"
)

// Devices that share the rows of a sequence may need the rows of all others, as the keys of an attention. Where a lowering cuts such rows, each device has a part of its own and one
// or two of others at a time: the parts go around a ring (H. Liu, M. Zaharia, P. Abbeel, "Ring attention with blockwise transformers for near-infinite context", 2023,
// arXiv:2310.01889). A device begins with its own part. Then it reads the part of the device before it, then the one before that, and so on. A part comes from the device before, if that
// has read it, or from its owner. The copy for a round waits for the tasks of the last round but one, so that both have the same place in memory.

// ring passes the parts of an operation around the devices of a stage.
type ring struct {
	l       *lowerer
	name    string // of the operation
	kernel  *kernels.Kernel
	stage   *dag.Stage
	extent  int                // of the rows
	rows    int                // the side of the written rows
	columns int                // the side of the rows over which the operation sums
	after   map[int]dag.TaskID // by device: the task for which the next copies wait
}

// ringOf is the ring of an operation if devices share its rows and the lowering cuts what these meet. Else it is nil.
func (l *lowerer) ringOf(n *Node, step string, k *kernels.Kernel, sides []side) *ring {
	s := l.sharing(n.Name)
	rows := slices.IndexFunc(sides, func(s side) bool { return s.along == dag.AlongRows && s.shares != nil })
	if s == nil || rows < 0 || !meets(sides) {
		return nil
	}
	columns := slices.IndexFunc(sides, func(s side) bool { return s.meets })
	if sides[columns].extent != sides[rows].extent {
		return nil
	}
	return &ring{l: l, name: n.Name + "." + step, kernel: k, stage: s, extent: sides[rows].extent, rows: rows, columns: columns, after: maps.Clone(l.latest)}
}

// owner is the place of the device with the middle of a range of rows, among those that share the rows of a replica.
func (r *ring) owner(of dag.Range) int {
	_, each := r.stage.Grid()
	for k := range each {
		if (of.Lo+of.Hi)/2 < dag.ShareOf(k, r.extent, each).Hi {
			return k
		}
	}
	return each - 1
}

// order sorts parts of an operation by the rounds of their devices.
func (r *ring) order(parts [][]dag.Range) {
	_, each := r.stage.Grid()
	distance := func(ranges []dag.Range) int {
		return (r.owner(ranges[r.rows]) - r.owner(ranges[r.columns]) + each) % each
	}
	slices.SortStableFunc(parts, func(a, b []dag.Range) int { return distance(a) - distance(b) })
}

// add adds a task of a device, with the copies of what it reads of others.
func (r *ring) add(t dag.Task, device int, operands []Operand) {
	_, each := r.stage.Grid()
	copied := false
	for i, a := range t.Accesses {
		rows := slices.Index(operands[i].axes, dag.AlongRows)
		if a.Mode != dag.Read || a.Box == nil || rows < 0 {
			continue
		}
		if owner := r.owner(a.Box[rows]); owner != device%each {
			id, isNew := r.passed(t, i, device, device-device%each+owner)
			t.Accesses[i].Region = dag.Region{Buffer: id}
			copied = copied || isNew
		}
	}
	if copied {
		r.after[device] = r.l.latest[device]
	}
	if t = r.l.completed(t); r.l.b.Err() == nil {
		r.l.latest[device] = r.l.b.Task(t)
	}
}

// passed is the buffer of a part on its way to a device. If it is new, a task copies the part on the device before or on the owner.
func (r *ring) passed(t dag.Task, access, to, owner int) (id dag.BufferID, isNew bool) {
	_, each := r.stage.Grid()
	a := t.Accesses[access]
	nameFor := func(device int) string {
		name := fmt.Sprintf("%s.%s%s", r.name, r.kernel.Operands[access].Name, r.l.now.suffix)
		for _, part := range a.Box {
			name = fmt.Sprintf("%s.%d", name, part.Lo)
		}
		return deviceName(name, device)
	}
	if id, there := r.l.b.BufferNamed(nameFor(to)); there {
		return id, false
	}
	before := to - to%each + (to%each+each-1)%each
	from, at := a.Region, owner
	if id, there := r.l.b.BufferNamed(nameFor(before)); there {
		from, at = dag.Region{Buffer: id}, before
	}
	shape := make([]int, len(a.Box))
	for d, part := range a.Box {
		shape[d] = part.Len()
	}
	id = r.l.b.Buffer(dag.Buffer{Name: nameFor(to), Shape: shape, Type: r.l.b.BufferAt(a.Buffer).Type})
	copies := dag.Task{
		Name: nameFor(to) + ".copy", Op: "copy", Labels: t.Labels, Placement: &dag.Placement{Device: r.stage.Devices[at]},
		Accesses: []dag.Access{writes(id, nil), {Region: from, Mode: dag.Read}},
	}
	if after, known := r.after[to]; known {
		copies.After = []dag.TaskID{after}
	}
	r.l.add(copies)
	return id, true
}
