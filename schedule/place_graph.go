package schedule

import (
	"fmt"
	"slices"

	"dahl/dag"
	"dahl/platform"
)

// placing builds the placed graph of one graph.
type placing struct {
	*traffic
	b  *dag.Builder
	pg *PlacedGraph

	instance [][]dag.BufferID // by memory and buffer of the origin; dag.None: there is none
	pieces   [][]dag.BufferID // by memory and storage: its view by the boxes of its atoms; dag.None: not yet
	task     []dag.TaskID     // by task of the origin
}

// build makes the movements tasks between instances. Where there are none and every
// storage is used only in the host memory, the graph is the origin's own.
func (t *traffic) build() (*PlacedGraph, error) {
	g := t.p.Graph
	use := t.usedIn()
	host := t.p.Platform.HostMemory()
	elsewhere := func(home platform.MemoryID) bool { return home != host }
	if !slices.ContainsFunc(use, func(set uint64) bool { return set != 1<<host }) && !slices.ContainsFunc(t.homes, elsewhere) {
		return unplaced(g, host), nil
	}
	memories := len(t.p.Platform.Memories)
	c := &placing{traffic: t, b: dag.NewBuilder(g.Name), pg: &PlacedGraph{Origin: g, Enter: t.enter, Leave: t.leave},
		instance: make([][]dag.BufferID, memories), pieces: make([][]dag.BufferID, memories), task: make([]dag.TaskID, len(g.Tasks))}
	for m := range memories {
		c.instance[m] = slices.Repeat([]dag.BufferID{dag.None}, len(g.Buffers))
		c.pieces[m] = slices.Repeat([]dag.BufferID{dag.None}, len(g.Buffers))
	}
	c.addInstances(use)
	for task := range g.Tasks {
		c.addTask(dag.TaskID(task))
		for _, m := range t.after[task] {
			c.addCopy(dag.TaskID(task), m)
		}
	}
	for _, m := range slices.Concat(t.enter, t.leave) {
		c.pair(m)
	}
	var err error
	if c.pg.Graph, err = c.b.Build(); err != nil {
		return nil, err
	}
	c.pg.ReuseNext = c.lostOrders()
	return c.pg, nil
}

// lostOrders are those of the origin from step to step that the placed graph lacks.
func (c *placing) lostOrders() []Edge {
	var lost []Edge
	for t, to := range c.task {
		id := dag.TaskID(t)
		kept := append(slices.Clone(c.pg.Graph.CarriedPreds(to)), c.pg.Graph.ReusePreds(to)...)
		for _, before := range [2][]int32{c.p.Graph.CarriedPreds(id), c.p.Graph.ReusePreds(id)} {
			for _, from := range before {
				if placed := c.task[from]; !slices.Contains(kept, int32(placed)) {
					lost = append(lost, Edge{placed, to})
				}
			}
		}
	}
	return lost
}

// unplaced is a graph of which nothing leaves one memory.
func unplaced(g *dag.Graph, m platform.MemoryID) *PlacedGraph {
	pg := &PlacedGraph{Origin: g, Graph: g, TaskOf: make([]dag.TaskID, len(g.Tasks)), Moves: make([]*Move, len(g.Tasks)),
		Memory: slices.Repeat([]platform.MemoryID{m}, len(g.Buffers)), BufferOf: make([]dag.BufferID, len(g.Buffers))}
	for t := range pg.TaskOf {
		pg.TaskOf[t] = dag.TaskID(t)
	}
	for b := range pg.BufferOf {
		pg.BufferOf[b] = dag.BufferID(b)
	}
	return pg
}

// usedIn is the set of memories that need an instance of each buffer: a storage where
// tasks use it, where it comes from and goes to, and at home if it has contents between
// runs; a view where tasks use it.
func (t *traffic) usedIn() []uint64 {
	g := t.p.Graph
	use := make([]uint64, len(g.Buffers))
	for task := range g.Tasks {
		for _, a := range g.Tasks[task].Accesses {
			set := uint64(1) << t.memoryOf(dag.TaskID(task))
			use[a.Buffer] |= set
			use[g.Storage(a.Buffer)] |= set
		}
	}
	add := func(moves []*Move) {
		for _, m := range moves {
			use[m.Buffer] |= 1<<m.From | 1<<m.To
		}
	}
	for _, moves := range t.after {
		add(moves)
	}
	add(t.enter)
	add(t.leave)
	for b := range use { // what nobody uses may be a matter of the user's
		if owner := g.Buffers[b].ViewOf; use[b] == 0 && owner != dag.None {
			use[b] = use[owner]
		} else if use[b] == 0 {
			use[b] = 1 << t.p.Platform.HostMemory()
		}
	}
	return use
}

// addInstances gives every buffer an instance in each memory that needs one, the host
// memory's first and under the name of the buffer itself.
func (c *placing) addInstances(use []uint64) {
	pl := c.p.Platform
	host := pl.HostMemory()
	order := []platform.MemoryID{host}
	for m := range pl.Memories {
		if platform.MemoryID(m) != host {
			order = append(order, platform.MemoryID(m))
		}
	}
	for b := range c.p.Graph.Buffers {
		for _, m := range order {
			if use[b]&(1<<m) != 0 {
				c.addInstance(dag.BufferID(b), m, m == host)
			}
		}
	}
}

func (c *placing) addInstance(id dag.BufferID, m platform.MemoryID, host bool) {
	buf := c.p.Graph.Buffers[id]
	if buf.Home != "" {
		buf.Home = HostHome // of the placed graph, whose memories are a matter of Memory
	}
	if !host {
		buf.Name += "@" + c.p.Platform.Memories[m].Name
		buf.Home = ""
	}
	if buf.ViewOf == dag.None {
		c.instance[m][id] = c.b.Buffer(buf)
	} else {
		c.instance[m][id] = c.b.View(buf.Name, c.instance[m][buf.ViewOf], buf.Shape...)
	}
	c.pg.Memory, c.pg.BufferOf = append(c.pg.Memory, m), append(c.pg.BufferOf, id)
}

// addTask adds a task of the origin, on the instances of its worker's memory. It keeps all
// of its predecessors: two memories could hold two versions at once, but a schedule of the
// placed graph is to be one of the origin too.
func (c *placing) addTask(t dag.TaskID) {
	task := c.p.Graph.Tasks[t]
	m := c.memoryOf(t)
	task.Accesses = slices.Clone(task.Accesses)
	for i := range task.Accesses {
		task.Accesses[i].Buffer = c.instance[m][task.Accesses[i].Buffer]
	}
	task.After = nil
	for _, before := range c.p.Graph.Preds(t) {
		task.After = append(task.After, c.task[before])
	}
	c.task[t] = c.b.Task(task)
	c.pg.TaskOf, c.pg.Moves = append(c.pg.TaskOf, t), append(c.pg.Moves, nil)
}

// addCopy adds the task that moves something after its writer.
func (c *placing) addCopy(writer dag.TaskID, m *Move) {
	g, memories := c.p.Graph, c.p.Platform.Memories
	buf := &g.Buffers[m.Buffer]
	step := ""
	if m.NextStep {
		step = " of the next step"
	}
	c.pair(m)
	task := dag.Task{Op: CopyOp, Type: buf.Type, MovedBytes: m.Bytes,
		Name: fmt.Sprintf("copy %s from %s to %s after %s for %s%s", buf.Name, memories[m.From].Name, memories[m.To].Name,
			g.Tasks[writer].Name, g.Tasks[m.For].Name, step)}
	for _, pair := range m.Pairs {
		task.Accesses = append(task.Accesses, dag.Access{Region: pair.From, Mode: dag.Read}, dag.Access{Region: pair.To, Mode: dag.Write})
	}
	c.b.Task(task)
	c.pg.TaskOf, c.pg.Moves = append(c.pg.TaskOf, -1), append(c.pg.Moves, m)
}

// pair finds the regions of the instances between which something moves.
func (c *placing) pair(m *Move) {
	shape, boxes := c.p.Graph.AtomBoxes(m.Atoms)
	from, to := c.shaped(m.Buffer, m.From, shape), c.shaped(m.Buffer, m.To, shape)
	for _, box := range boxes {
		m.Pairs = append(m.Pairs, RegionPair{From: dag.Region{Buffer: from, Box: box}, To: dag.Region{Buffer: to, Box: box}})
	}
}

// shaped is the instance of a storage, or a view of it, that has a shape.
func (c *placing) shaped(storage dag.BufferID, m platform.MemoryID, shape []int) dag.BufferID {
	owner := c.instance[m][storage]
	if slices.Equal(c.p.Graph.Buffers[storage].Shape, shape) {
		return owner
	}
	if c.pieces[m][storage] == dag.None {
		c.pieces[m][storage] = c.b.View(c.b.BufferAt(owner).Name+" in pieces", owner, shape...)
		c.pg.Memory, c.pg.BufferOf = append(c.pg.Memory, m), append(c.pg.BufferOf, storage)
	}
	return c.pieces[m][storage]
}
