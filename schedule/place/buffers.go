package place

import (
	"fmt"
	"slices"

	"dahl/dag"
	"dahl/platform"
)

// writtenOut describes the replicas of a placed graph. Layouts and runs of kernels need it. A replay of the lists
// alone does not.
type writtenOut struct {
	list   []dag.Buffer                  // replicas, then views of them in pieces
	memory []platform.MemoryID           // by buffer
	of     []dag.BufferID                // by buffer: the one of the origin
	rows   usedRows                      // of storages with only some rows there
	pieces map[dag.BufferID]dag.BufferID // by replica: the view of a shape that tells its atoms apart
}

// writeBuffers gives every buffer a name and a shape.
func (pg *Graph) writeBuffers() *writtenOut {
	if pg.moves == nil {
		return unmoved(pg.Origin, pg.host)
	}
	w := &writtenOut{}
	w.rows = pg.rowsUsed(len(pg.moves), func(i int) (dag.TaskID, *Move) { return pg.taskOf[i], pg.moves[i] })
	w.list, w.memory, w.of = make([]dag.Buffer, len(pg.replicas.of)), make([]platform.MemoryID, len(pg.replicas.of)), slices.Clone(pg.replicas.of)
	w.pieces = map[dag.BufferID]dag.BufferID{}
	for i := range w.list {
		w.list[i], w.memory[i] = pg.newBuffer(w, dag.BufferID(i))
	}
	for t, m := range pg.moves {
		pg.addPieces(w, m, dag.TaskID(t))
	}
	for _, m := range slices.Concat(pg.Enter, pg.Leave) {
		pg.addPieces(w, m, -1)
	}
	return w
}

// unmoved describes the buffers of a graph that lies in one memory.
func unmoved(g *dag.Graph, m platform.MemoryID) *writtenOut {
	w := &writtenOut{list: g.Buffers, memory: slices.Repeat([]platform.MemoryID{m}, len(g.Buffers)), of: make([]dag.BufferID, len(g.Buffers))}
	for b := range w.of {
		w.of[b] = dag.BufferID(b)
	}
	return w
}

// newBuffer is a replica, and its memory. Owners come before their views.
func (pg *Graph) newBuffer(w *writtenOut, replica dag.BufferID) (dag.Buffer, platform.MemoryID) {
	b := pg.replicas.of[replica]
	m, n := pg.replicas.memoryOf(replica)
	of := &pg.Origin.Buffers[b]
	buf := *of
	if of.ViewOf != dag.None {
		owner := pg.replicas.id(location{of.ViewOf, m}, n)
		buf = w.list[owner]
		buf.ViewOf, buf.Layout, buf.Versions = owner, "", 0
	} else if buf.Versions = int(pg.versionsIn(location{b, m})); m != pg.host {
		buf.Home = ""
	} else if buf.Home != "" {
		buf.Home = dag.HostHome // of the placed graph, whose memories are a matter of its own
	}
	rows, kept := w.rows.of(location{pg.Origin.Storage(b), m})
	buf.Name, buf.Shape = pg.replicaName(location{b, m}), ofRows(rows, kept, of.Shape)
	if pg.streams(replica) {
		buf.Role = dag.Activation
	}
	if n > 0 {
		buf.Name = fmt.Sprintf("%s#%d", buf.Name, n+1)
	}
	return buf, m
}

// replicaName names the first replica of a buffer in a memory. In the host memory it is the buffer's own name.
func (t *traffic) replicaName(at location) string {
	name := t.g.Buffers[at.storage].Name
	return ReplicaName(t.p, name, at.memory)
}

// ReplicaName names the first replica of a buffer of the origin in a memory.
func ReplicaName(p *platform.Platform, buffer string, m platform.MemoryID) string {
	if m == p.HostMemory() {
		return buffer
	}
	return buffer + "@" + p.Memories[m].Name
}

// addPieces adds the views in which the parts of a move are boxes.
func (pg *Graph) addPieces(w *writtenOut, m *Move, t dag.TaskID) {
	if m == nil {
		return
	}
	shape := pg.Origin.PieceShape(m.Buffer)
	if slices.Equal(pg.Origin.Buffers[m.Buffer].Shape, shape) {
		return
	}
	for _, at := range [2]location{{m.Buffer, m.From}, {m.Buffer, m.To}} {
		owner := pg.movedReplica(at, t)
		if _, known := w.pieces[owner]; known {
			continue
		}
		w.pieces[owner] = dag.BufferID(len(w.list))
		rows, kept := w.rows.of(at)
		view := w.list[owner]
		view.Name, view.Shape, view.ViewOf, view.Layout = view.Name+" in pieces", ofRows(rows, kept, shape), owner, ""
		w.list, w.memory, w.of = append(w.list, view), append(w.memory, at.memory), append(w.of, m.Buffer)
	}
}

// movedReplica is the replica that a transfer reads or writes; t is negative for one outside
// the steps.
func (pg *Graph) movedReplica(at location, t dag.TaskID) dag.BufferID {
	n := int32(0)
	if t >= 0 {
		n = pg.spill(t).uses[at]
	}
	return pg.replicas.id(at, n)
}

// Pairs are the regions of replicas that a move reads and writes. It is made by a task, or
// before the first step or after the last one (t < 0).
func (pg *Graph) Pairs(m *Move, t dag.TaskID) []RegionPair {
	w := pg.buffers()
	region := func(at location, box dag.Box) dag.Region {
		b, shape := pg.movedReplica(at, t), pg.Origin.Buffers[m.Buffer].Shape
		if piece, ok := w.pieces[b]; ok {
			b, shape = piece, pg.Origin.PieceShape(m.Buffer)
		}
		rows, kept := w.rows.of(at)
		return dag.Region{Buffer: b, Box: boxOfRows(rows, kept, shape, box)}
	}
	var pairs []RegionPair
	for _, box := range pg.boxes(m) {
		pairs = append(pairs, RegionPair{region(location{m.Buffer, m.From}, box), region(location{m.Buffer, m.To}, box)})
	}
	return pairs
}

// MemoryOf is the memory of a buffer of the graph.
func (pg *Graph) MemoryOf(b dag.BufferID) platform.MemoryID { return pg.buffers().memory[b] }

// BufferOf is the buffer of the origin that one of the graph is a replica of.
func (pg *Graph) BufferOf(b dag.BufferID) dag.BufferID { return pg.buffers().of[b] }

// writeGraph makes the graph of all tasks and transfers, with names, regions and orders beyond the dependences of
// these regions. It refuses a graph in which a name is given twice.
func (pg *Graph) writeGraph() (*dag.Graph, error) {
	if pg.moves == nil {
		return pg.Origin, nil
	}
	w := pg.buffers()
	b := dag.NewBuilder(pg.Origin.Name)
	b.Grow(len(pg.moves), len(w.list))
	for i := range w.list {
		if buf := &w.list[i]; buf.ViewOf == dag.None {
			b.Buffer(*buf)
		} else {
			b.View(buf.Name, buf.ViewOf, buf.Shape...)
		}
	}
	after := pg.Body().After
	var before []int32
	for t := range dag.TaskID(len(pg.moves)) {
		task := pg.newTask(w, t)
		before = after(t, before[:0])
		for _, p := range before {
			task.After = append(task.After, dag.TaskID(p))
		}
		b.Task(task)
	}
	return b.Build()
}

// newTask is a task of the graph without those that it follows.
func (pg *Graph) newTask(w *writtenOut, t dag.TaskID) dag.Task {
	if m := pg.moves[t]; m != nil {
		task := dag.Task{Name: pg.Name(t), Op: CopyOp, Type: pg.Origin.Buffers[m.Buffer].Type, MovedBytes: m.Bytes}
		for _, pair := range pg.Pairs(m, t) {
			task.Accesses = append(task.Accesses, dag.Access{Region: pair.From, Mode: dag.Read}, dag.Access{Region: pair.To, Mode: dag.Write})
		}
		return task
	}
	task := pg.Origin.Tasks[pg.taskOf[t]]
	memory := pg.memoryOf(pg.taskOf[t])
	task.Accesses, task.After = slices.Clone(task.Accesses), nil
	for i, a := range task.Accesses {
		at := location{pg.Origin.Storage(a.Buffer), memory}
		rows, kept := w.rows.of(at)
		task.Accesses[i].Region = dag.Region{Buffer: pg.replicas.id(location{a.Buffer, memory}, pg.spill(t).uses[at]), Box: boxOfRows(rows, kept, pg.Origin.Buffers[a.Buffer].Shape, a.Box)}
	}
	return task
}
