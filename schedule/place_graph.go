package schedule

import (
	"fmt"
	"slices"

	"dahl/dag"
	"dahl/platform"
)

// location is a storage of the origin in a memory.
type location struct {
	storage dag.BufferID
	memory  platform.MemoryID
}

// placedItem is a task of the origin or a move, in the order that gives the placed graph
// its meaning.
type placedItem struct {
	task dag.TaskID // of the origin; -1: a move
	move *Move
	name string // of a move
	// Where a memory has several instances of a storage, one after the other: which one
	// the item uses. After are earlier items that it follows for the room that they leave,
	// and afterLast those of the step before.
	uses             map[location]int32
	after, afterLast []int32
}

// placing builds the placed graph of one graph.
type placing struct {
	*traffic
	b        *dag.Builder
	pg       *PlacedGraph
	streamed map[string]bool        // names of instances that are not kept, and share room with others
	rows     map[location]dag.Range // of storages of which not all are there

	instance map[location][]dag.BufferID // by buffer of the origin in a memory
	pieces   map[dag.BufferID]dag.BufferID
	task     []dag.TaskID // by task of the origin
}

// items lists the tasks in program order, what moves after each right behind it.
func (t *traffic) items() []placedItem {
	g, memories := t.p.Graph, t.p.Platform.Memories
	var items []placedItem
	for task := range g.Tasks {
		items = append(items, placedItem{task: dag.TaskID(task)})
		for _, m := range t.after[task] {
			step := ""
			if m.NextStep {
				step = " of the next step"
			}
			items = append(items, placedItem{task: -1, move: m, name: fmt.Sprintf("copy %s from %s to %s after %s for %s%s", g.Buffers[m.Buffer].Name,
				memories[m.From].Name, memories[m.To].Name, g.Tasks[task].Name, g.Tasks[m.For].Name, step)})
		}
	}
	return items
}

// build makes the movements tasks between instances. Where there are none and every
// storage is used only in the host memory, the graph is the origin's own.
func (t *traffic) build(items []placedItem, streamed map[string]bool) (*PlacedGraph, error) {
	g := t.p.Graph
	use := t.usedIn(items)
	host := t.p.Platform.HostMemory()
	elsewhere := func(home platform.MemoryID) bool { return home != host }
	if !slices.ContainsFunc(use, func(set uint64) bool { return set != 1<<host }) && !slices.ContainsFunc(t.homes, elsewhere) {
		return unplaced(g, host), nil
	}
	c := &placing{traffic: t, b: dag.NewBuilder(g.Name), pg: &PlacedGraph{Origin: g, Enter: t.enter, Leave: t.leave}, streamed: streamed, rows: t.rowsUsed(items),
		instance: map[location][]dag.BufferID{}, pieces: map[dag.BufferID]dag.BufferID{}, task: make([]dag.TaskID, len(g.Tasks))}
	c.addInstances(use, instancesOf(items))
	for i := range items {
		c.add(&items[i])
	}
	for _, m := range slices.Concat(t.enter, t.leave) {
		c.pair(m, nil)
	}
	var err error
	if c.pg.Graph, err = c.b.Build(); err != nil {
		return nil, err
	}
	for to := range items {
		for _, from := range items[to].afterLast {
			c.pg.RoomNext = append(c.pg.RoomNext, Edge{dag.TaskID(from), dag.TaskID(to)})
		}
	}
	c.pg.ReuseNext = append(c.lostOrders(), c.pg.RoomNext...)
	return c.pg, nil
}

// instancesOf counts them where there are several.
func instancesOf(items []placedItem) map[location]int32 {
	count := map[location]int32{}
	for i := range items {
		for at, n := range items[i].uses {
			count[at] = max(count[at], n+1)
		}
	}
	return count
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
func (t *traffic) usedIn(items []placedItem) []uint64 {
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
	for i := range items {
		if items[i].move != nil {
			add([]*Move{items[i].move})
		}
	}
	add(t.enter)
	add(t.leave)
	for b := range use { // what nobody uses may be a matter of the user's
		if owner := g.Buffers[b].ViewOf; use[b] == 0 && owner != dag.None {
			use[b] = use[owner]
		} else if use[b] == 0 {
			use[b] = 1 << t.homes[b]
		}
	}
	return use
}

// addInstances gives every buffer an instance in each memory that needs one, the host
// memory's first and under the name of the buffer itself; several where the items do.
func (c *placing) addInstances(use []uint64, several map[location]int32) {
	pl := c.p.Platform
	host := pl.HostMemory()
	order := []platform.MemoryID{host}
	for m := range pl.Memories {
		if platform.MemoryID(m) != host {
			order = append(order, platform.MemoryID(m))
		}
	}
	for b := range c.p.Graph.Buffers {
		id := dag.BufferID(b)
		for _, m := range order {
			if use[b]&(1<<m) == 0 {
				continue
			}
			for n := range max(1, several[location{c.p.Graph.Storage(id), m}]) {
				c.addInstance(location{id, m}, n, m == host)
			}
		}
	}
}

func (c *placing) addInstance(at location, n int32, host bool) {
	buf := c.p.Graph.Buffers[at.storage]
	buf.Name, buf.Shape = c.instanceName(at), c.ofRows(location{c.p.Graph.Storage(at.storage), at.memory}, buf.Shape)
	if !host {
		buf.Home = ""
	} else if buf.Home != "" {
		buf.Home = HostHome // of the placed graph, whose memories are a matter of Memory
	}
	if c.streamed[buf.Name] {
		buf.Role = dag.Activation
	}
	if n > 0 {
		buf.Name += fmt.Sprintf("#%d", n+1)
	}
	id := dag.None
	if buf.ViewOf == dag.None {
		id = c.b.Buffer(buf)
	} else {
		id = c.b.View(buf.Name, c.instance[location{buf.ViewOf, at.memory}][n], buf.Shape...)
	}
	c.instance[at] = append(c.instance[at], id)
	c.pg.Memory, c.pg.BufferOf = append(c.pg.Memory, at.memory), append(c.pg.BufferOf, at.storage)
}

// instanceName is that of the first instance of a buffer in a memory: its own in the
// host's.
func (t *traffic) instanceName(at location) string {
	name := t.p.Graph.Buffers[at.storage].Name
	if at.memory == t.p.Platform.HostMemory() {
		return name
	}
	return name + "@" + t.p.Platform.Memories[at.memory].Name
}

// add adds the task of an item. One of the origin works on the instances of its worker's
// memory, and keeps all of its predecessors: two memories could hold two versions at
// once, but a schedule of the placed graph is to be one of the origin too.
func (c *placing) add(item *placedItem) {
	task := dag.Task{Name: item.name, Op: CopyOp}
	if item.move != nil {
		c.pair(item.move, item.uses)
		task.Type, task.MovedBytes = c.p.Graph.Buffers[item.move.Buffer].Type, item.move.Bytes
		for _, pair := range item.move.Pairs {
			task.Accesses = append(task.Accesses, dag.Access{Region: pair.From, Mode: dag.Read}, dag.Access{Region: pair.To, Mode: dag.Write})
		}
	} else {
		task = c.p.Graph.Tasks[item.task]
		m := c.memoryOf(item.task)
		task.Accesses = slices.Clone(task.Accesses)
		for i, a := range task.Accesses {
			at := location{c.p.Graph.Storage(a.Buffer), m}
			task.Accesses[i].Buffer = c.instance[location{a.Buffer, m}][item.uses[at]]
			if a.Box != nil {
				task.Accesses[i].Box = c.boxOfRows(at, a.Box)
			}
		}
		task.After = nil
		for _, before := range c.p.Graph.Preds(item.task) {
			task.After = append(task.After, c.task[before])
		}
		c.task[item.task] = dag.TaskID(len(c.pg.TaskOf))
	}
	for _, before := range item.after {
		task.After = append(task.After, dag.TaskID(before))
	}
	c.b.Task(task)
	c.pg.TaskOf, c.pg.Moves = append(c.pg.TaskOf, item.task), append(c.pg.Moves, item.move)
}

// pair finds the regions of the instances between which something moves.
func (c *placing) pair(m *Move, uses map[location]int32) {
	shape, boxes := c.p.Graph.AtomBoxes(m.Atoms)
	from, to := location{m.Buffer, m.From}, location{m.Buffer, m.To}
	source, target := c.shaped(from, uses, shape), c.shaped(to, uses, shape)
	m.Pairs = nil
	for _, box := range boxes {
		m.Pairs = append(m.Pairs, RegionPair{From: dag.Region{Buffer: source, Box: c.boxOfRows(from, box)}, To: dag.Region{Buffer: target, Box: c.boxOfRows(to, box)}})
	}
}

// shaped is an instance of a storage, or a view of it, that has a shape.
func (c *placing) shaped(at location, uses map[location]int32, shape []int) dag.BufferID {
	owner := c.instance[at][uses[at]]
	if slices.Equal(c.p.Graph.Buffers[at.storage].Shape, shape) {
		return owner
	}
	if _, known := c.pieces[owner]; !known {
		c.pieces[owner] = c.b.View(c.b.BufferAt(owner).Name+" in pieces", owner, c.ofRows(at, shape)...)
		c.pg.Memory, c.pg.BufferOf = append(c.pg.Memory, at.memory), append(c.pg.BufferOf, at.storage)
	}
	return c.pieces[owner]
}
