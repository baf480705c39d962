package place

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"dahl/dag"
	"dahl/platform"
)

// location is a storage of the origin in a memory.
type location struct {
	storage dag.BufferID
	memory  platform.MemoryID
}

// stepItem is a task of the origin or a move, in the order that gives the placed graph
// its meaning.
type stepItem struct {
	task dag.TaskID // of the origin; -1: a move
	move *Move
	itemSpill
}

// itemSpill is the part of an item in evictions and reloads.
type itemSpill struct {
	// uses says which replica of a storage the item uses, where a memory has several one after the other. The item
	// takes the room of the earlier items after, and of the items afterLast of the step before.
	uses             map[location]int32
	after, afterLast []int32
	again            int32 // of a transfer: the number of earlier transfers of the same contents, for other residences
}

// items lists the tasks in program order, what moves after each right behind it.
func (t *traffic) items() []stepItem {
	items := make([]stepItem, len(t.moves))
	for i, m := range t.moves {
		items[i] = stepItem{task: t.taskOf[i], move: m}
	}
	return items
}

// build finds the dependences of tasks and transfers. The items are the traffic with evictions and reloads. Nil means
// that there are none. Where nothing moves and every storage is used only in the host memory, the graph is the
// origin's own.
func (t *traffic) build(items []stepItem, streamed map[string]bool) *Graph {
	pg := &Graph{Origin: t.g, Links: t.g.Links, traffic: t, streamed: streamed}
	if items != nil {
		pg.takeItems(items)
	}
	if t.moves != nil {
		pg.Enter, pg.Leave = t.enter, t.leave
		pg.replicas = t.newReplicas()
		pg.replicas.numberAtoms(pg.Body())
		pg.Links, pg.carries, pg.writes = pg.inShares(pg.Body()).Link()
	}
	pg.engines = sync.OnceValue(func() map[engineGroup][]int { return enginesOf(t.lanes) })
	pg.Orders = sync.OnceValue(pg.allOrders)
	pg.buffers = sync.OnceValue(pg.writeBuffers)
	pg.Graph = sync.OnceValues(pg.writeGraph)
	return pg
}

// takeItems makes items the tasks of the graph.
func (pg *Graph) takeItems(items []stepItem) {
	t := pg.traffic
	t.taskOf, t.moves, t.spills = make([]dag.TaskID, len(items)), make([]*Move, len(items)), make([]itemSpill, len(items))
	for i, item := range items {
		t.taskOf[i], t.moves[i], t.spills[i] = item.task, item.move, item.itemSpill
		if item.move == nil {
			t.at[item.task] = int32(i)
		}
		for _, from := range item.afterLast {
			pg.MemoryReuseNext = append(pg.MemoryReuseNext, dag.Edge{From: dag.TaskID(from), To: dag.TaskID(i)})
		}
	}
}

// TaskOf is the task of the origin behind a task, and -1 for a transfer.
func (pg *Graph) TaskOf(t dag.TaskID) dag.TaskID {
	if pg.moves == nil {
		return t
	}
	return pg.taskOf[t]
}

// Move is the move of a transfer. Nil means a task of the origin.
func (pg *Graph) Move(t dag.TaskID) *Move {
	if pg.moves == nil {
		return nil
	}
	return pg.moves[t]
}

// Moves are the moves of all transfers of a step, by task. Nil means a task of the origin.
func (pg *Graph) Moves() []*Move { return pg.moves }

// PlacedAs is the task of the placed graph for a task of the origin.
func (pg *Graph) PlacedAs(origin dag.TaskID) dag.TaskID {
	if pg.moves == nil {
		return origin
	}
	return dag.TaskID(pg.at[origin])
}

// spill is the part of a task in evictions and reloads.
func (pg *Graph) spill(t dag.TaskID) *itemSpill {
	if pg.spills == nil {
		return &noSpill
	}
	return &pg.spills[t]
}

var noSpill itemSpill

// Lag is how many steps a task runs behind the first ones of its period: as the plan says, and of a transfer as its writer.
func (pg *Graph) Lag(t dag.TaskID) int32 {
	if pg.plan.Lags == nil {
		return 0
	}
	switch m := pg.Move(t); {
	case m == nil:
		return pg.plan.Lags[pg.TaskOf(t)]
	case m.Writer < 0:
		return 0
	default:
		return pg.plan.Lags[m.Writer]
	}
}

// MaxLag is the greatest lag of a task.
func (pg *Graph) MaxLag() int32 { return pg.maxLag }

// Body lists the uses of atoms of replicas by tasks and transfers. A task of the origin
// works on the replicas of its worker's memory, and keeps all of its predecessors: two
// memories could hold two versions at once, but a schedule of the placed graph is to be one
// of the origin too.
func (pg *Graph) Body() *dag.Body {
	if pg.moves == nil {
		return pg.Origin.Body()
	}
	g := pg.Origin
	body := &dag.Body{Tasks: len(pg.moves), Atoms: int(pg.replicas.atoms), Keeps: make([]bool, len(pg.replicas.of)), Edges: 4 * len(pg.moves)}
	for i, b := range pg.replicas.of {
		role := g.Buffers[b].Role
		body.Keeps[i] = (role == dag.Parameter || role == dag.State) && !pg.streams(dag.BufferID(i))
	}
	if g.AllVersions() != nil {
		body.Versions = make([]int32, len(pg.replicas.of))
		for i, b := range pg.replicas.of {
			m, _ := pg.replicas.memoryOf(dag.BufferID(i))
			body.Versions[i] = pg.versionsIn(location{g.Storage(b), m})
		}
	}
	body.Each = func(t dag.TaskID, use dag.Use) {
		visit := func(at location, mode dag.Mode, atoms []int32) {
			replica := pg.replicas.id(at, pg.spill(t).uses[at])
			use(replica, mode, atoms, pg.replicas.shift[replica])
		}
		if m := pg.moves[t]; m != nil {
			visit(location{m.Buffer, m.From}, dag.Read, m.Atoms)
			visit(location{m.Buffer, m.To}, dag.Write, m.Atoms)
			return
		}
		origin := pg.taskOf[t]
		memory := pg.memoryOf(origin)
		for _, a := range g.Covers(origin) {
			visit(location{a.Storage, memory}, a.Mode, g.AtomsOf(a))
		}
	}
	body.After = func(t dag.TaskID, tasks []int32) []int32 {
		if origin := pg.taskOf[t]; origin >= 0 {
			for _, before := range g.Preds(origin) {
				tasks = append(tasks, pg.at[before])
			}
		}
		if m := pg.moves[t]; m != nil && m.Part > 0 {
			tasks = append(tasks, int32(t)-1) // parts go in turn however many engines there are
		}
		return append(tasks, pg.spill(t).after...)
	}
	return body
}

// streams reports whether a replica is not kept, and shares room with others.
func (pg *Graph) streams(replica dag.BufferID) bool {
	if len(pg.streamed) == 0 {
		return false
	}
	m, _ := pg.replicas.memoryOf(replica)
	return pg.streamed[pg.replicaName(location{pg.replicas.of[replica], m})]
}

// Stays reports whether a replica holds its contents for the whole run. It does if it keeps them from step to step,
// or if no task writes it.
func (pg *Graph) Stays(replica dag.BufferID) bool { return pg.carries[replica] || !pg.writes[replica] }

// Reloads reports whether something comes back that a memory had dropped.
func (pg *Graph) Reloads() bool {
	return slices.ContainsFunc(pg.moves, func(m *Move) bool { return m != nil && m.Reason == ReasonReload })
}

// MemoryOrders are the orders on which the contents of memories rest, by the number of steps
// between the two tasks.
func (pg *Graph) MemoryOrders() [][]dag.Edge { return [][]dag.Edge{pg.Reuse, pg.MemoryReuseNext} }

// allOrders adds to those the orders of the origin from step to step that the placed graph lacks.
func (pg *Graph) allOrders() [][]dag.Edge {
	orders := pg.MemoryOrders()
	if pg.moves == nil {
		return orders
	}
	orders[1] = slices.Clone(orders[1])
	for back := int32(1); back <= pg.Origin.Reach(); back++ {
		if int(back) == len(orders) {
			orders = append(orders, nil)
		}
		for id := range dag.TaskID(len(pg.Origin.Tasks)) {
			orders[back] = pg.appendLost(orders[back], id, back)
		}
		orders[back] = dag.SortEdges(orders[back])
	}
	return orders
}

// appendLost appends the orders of a task of the origin after tasks of an earlier step that the
// placed graph lacks.
func (pg *Graph) appendLost(lost []dag.Edge, id dag.TaskID, back int32) []dag.Edge {
	to := pg.PlacedAs(id)
	kept := pg.PredsBack(to, back)
	for _, before := range pg.Origin.PredsBack(id, back) {
		for _, from := range before {
			if placed := pg.at[from]; !slices.Contains(kept[0], placed) && !slices.Contains(kept[1], placed) {
				lost = append(lost, dag.Edge{From: dag.TaskID(placed), To: to})
			}
		}
	}
	return lost
}

// Name names a task or a transfer.
func (pg *Graph) Name(t dag.TaskID) string {
	m := pg.Move(t)
	if m == nil {
		return pg.Origin.Tasks[pg.TaskOf(t)].Name
	}
	name := m.name(pg.Origin, pg.p)
	if n := pg.spill(t).again; n > 0 {
		name += fmt.Sprintf(" #%d", n+1)
	}
	return name
}

// name names the transfer of a move.
func (m *Move) name(g *dag.Graph, p *platform.Platform) string {
	name := m.verb() + " " + g.Buffers[m.Buffer].Name
	if m.Reason != ReasonReload {
		name += " from " + p.Memories[m.From].Name
	}
	if m.Reason != ReasonEvict {
		name += " to " + p.Memories[m.To].Name
	}
	if m.Reason != ReasonReload {
		name += " after " + g.Tasks[m.Writer].Name
	}
	if m.Reason != ReasonEvict {
		name += " for " + g.Tasks[m.For].Name
	}
	if m.NextStep {
		name += " of the next step"
	}
	return name + m.partName()
}

// verb is the first word of the name of a transfer.
func (m *Move) verb() string {
	if m.Reason == ReasonReload || m.Reason == ReasonEvict {
		return string(m.Reason)
	}
	return CopyOp
}

// Compare orders transfers by the names of their buffer, their memories, their writer and their reader.
func (pg *Graph) Compare(a, b dag.TaskID) int {
	g, memories, x, y := pg.Origin, pg.p.Memories, pg.moves[a], pg.moves[b]
	c := strings.Compare(x.verb(), y.verb())
	if c == 0 && x.Buffer != y.Buffer {
		c = strings.Compare(g.Buffers[x.Buffer].Name, g.Buffers[y.Buffer].Name)
	}
	if c == 0 {
		c = cmp.Or(strings.Compare(memories[x.From].Name, memories[y.From].Name), strings.Compare(memories[x.To].Name, memories[y.To].Name))
	}
	if c == 0 && x.Writer != y.Writer { // else both move reloaded contents
		c = cmp.Compare(g.Rank(x.Writer), g.Rank(y.Writer))
	}
	if c == 0 {
		c = cmp.Compare(g.Rank(x.For), g.Rank(y.For))
	}
	if c == 0 && x.NextStep != y.NextStep {
		c = -1
		if x.NextStep {
			c = 1
		}
	}
	if c == 0 {
		c = cmp.Or(cmp.Compare(x.Part, y.Part), cmp.Compare(pg.spill(a).again, pg.spill(b).again))
	}
	return c
}
