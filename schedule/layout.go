package schedule

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"dahl/dag"
)

// Alignment is that of every storage and arena, in bytes: a cache line, and the
// widest vector register.
const Alignment = 64

// Align rounds a size up to Alignment.
func Align(bytes int64) int64 { return (bytes + Alignment - 1) &^ (Alignment - 1) }

// LayoutProgram places every storage of every graph of a program.
//
// Parameters and optimiser state go to the network arena, inputs that no task of
// any graph writes to the data arena; both depend on the program alone, in the
// order of names, so that all graphs find them at the same place. Everything else
// goes to the step arena, which is laid out for each graph by itself.
//
// Two storages of the step arena share bytes only if the graph puts every use of one before
// every use of the other. Layout.ReuseNext holds what the next step has to wait for.
//
// ScratchBytes is the size of the scratch arena of each graph; nil: none.
func LayoutProgram(prog *dag.Program, scratchBytes []int64) ([]*Layout, error) {
	all := part{program: prog.Name, holds: func(int, dag.BufferID) bool { return true }, keeps: func(int, dag.BufferID) bool { return false }, scratchBytes: scratchBytes,
		listed: make([]*listedPlaces, len(prog.Graphs))}
	graphs := make([]*tenants, len(prog.Graphs))
	for i, g := range prog.Graphs {
		graphs[i] = tenantsOf(g)
	}
	orders, err := programOrders(graphs, nil)
	if err != nil {
		return nil, err
	}
	return layOutPart(graphs, orders, all)
}

// tenants are what a layout has to know of a graph: its buffers, who uses them, and who comes
// after whom.
type tenants struct {
	graph            string // its name
	buffers          []dag.Buffer
	links            *dag.Links
	carried, written []bool // by storage
	each             func(t dag.TaskID, use dag.Use)
	taskName         func(t dag.TaskID) string
}

func tenantsOf(g *dag.Graph) *tenants {
	return &tenants{graph: g.Name, buffers: g.Buffers, links: g.Links, carried: g.CarriedStorages(), written: g.WrittenStorages(), each: g.Body().Each,
		taskName: func(t dag.TaskID) string { return g.Tasks[t].Name }}
}

// users are the tasks that use each storage, in program order.
func (t *tenants) users() [][]dag.TaskID {
	users := make([][]dag.TaskID, len(t.buffers))
	for task := range dag.TaskID(t.links.NumTasks()) {
		t.each(task, func(storage dag.BufferID, _ dag.Mode, _ []int32, _ int32) {
			if u := users[storage]; len(u) == 0 || u[len(u)-1] != task {
				users[storage] = append(u, task)
			}
		})
	}
	return users
}

// storage is the buffer that owns the storage of another.
func (t *tenants) storage(b dag.BufferID) dag.BufferID {
	if of := t.buffers[b].ViewOf; of != dag.None {
		return of
	}
	return b
}

// part is what one memory holds of a program, the arguments being a graph and a storage
// or view of it.
type part struct {
	program      string
	holds        func(graph int, b dag.BufferID) bool
	keeps        func(graph int, b dag.BufferID) bool // its contents are needed beyond what the graph shows
	scratchBytes []int64                              // by graph; nil: none
	listed       []*listedPlaces                      // by graph; nil: its plan lists none
}

// programOrders finds which tasks come after which in each graph.
func programOrders(graphs []*tenants, plans []*Plan) ([]*orders, error) {
	all := make([]*orders, len(graphs))
	for i, g := range graphs {
		var plan *Plan
		if plans != nil {
			plan = plans[i]
		}
		var err error
		if all[i], err = newOrders(g, plan); err != nil {
			return nil, fmt.Errorf("layout of graph %q: %w", g.graph, err)
		}
	}
	return all, nil
}

// layOutPart places the storages of every graph that one memory holds.
func layOutPart(graphs []*tenants, orders []*orders, in part) ([]*Layout, error) {
	shared, err := placeShared(graphs, in)
	if err != nil {
		return nil, fmt.Errorf("program %q: %w", in.program, err)
	}
	layouts := make([]*Layout, len(graphs))
	for i, g := range graphs {
		l := &Layout{Arena: make([]Arena, len(g.buffers)), Offset: make([]int64, len(g.buffers))}
		l.ArenaBytes[NetworkArena], l.ArenaBytes[DataArena] = shared.bytes[NetworkArena], shared.bytes[DataArena]
		if in.scratchBytes != nil {
			l.ArenaBytes[ScratchArena] = Align(in.scratchBytes[i])
		}
		if err := l.place(g, i, shared, orders[i], in); err != nil {
			return nil, fmt.Errorf("graph %q: %w", g.graph, err)
		}
		layouts[i] = l
	}
	return layouts, nil
}

// sharedStorages are the places of the storages that all graphs have in common.
type sharedStorages struct {
	bytes [NumArenas]int64
	place map[string]sharedPlace
}

type sharedPlace struct {
	arena         Arena
	offset, bytes int64
	listed        bool // by a plan, at offset
}

func placeShared(graphs []*tenants, in part) (*sharedStorages, error) {
	s := &sharedStorages{place: map[string]sharedPlace{}}
	written := map[string]bool{} // by input: a task of some graph writes it
	for _, g := range graphs {
		for i := range g.buffers {
			if b := &g.buffers[i]; b.Role == dag.Input {
				written[b.Name] = false
			}
		}
	}
	for _, g := range graphs {
		for b, w := range g.written {
			if _, input := written[g.buffers[b].Name]; w && input {
				written[g.buffers[b].Name] = true
			}
		}
	}
	for n, g := range graphs {
		for i := range g.buffers {
			b := &g.buffers[i]
			p := sharedPlace{bytes: b.Bytes()}
			switch {
			case b.ViewOf != dag.None || !in.holds(n, dag.BufferID(i)):
				continue
			case b.Role == dag.Parameter || b.Role == dag.State:
				p.arena = NetworkArena
			case b.Role == dag.Input && !written[b.Name]:
				p.arena = DataArena
			default:
				continue
			}
			if err := s.add(b, p, in.listed[n], g.graph); err != nil {
				return nil, err
			}
		}
	}
	return s, s.pack()
}

// add enters a storage of one graph, which may be in others too.
func (s *sharedStorages) add(b *dag.Buffer, p sharedPlace, listed *listedPlaces, graph string) error {
	at, ok, err := listed.of(b.Name, p.arena)
	if err != nil {
		return err
	}
	p.offset, p.listed = at, ok
	other, known := s.place[b.Name]
	switch {
	case known && (other.bytes != p.bytes || other.arena != p.arena):
		return fmt.Errorf("buffer %q has %d bytes as %s in graph %q, and something else in another graph", b.Name, p.bytes, b.Role, graph)
	case known && other.listed && p.listed && other.offset != p.offset:
		return fmt.Errorf("the plans of two graphs put buffer %q at %d and at %d of arena %q", b.Name, other.offset, p.offset, p.arena)
	case !known || p.listed:
		s.place[b.Name] = p
	}
	return nil
}

// pack puts what no plan lists one behind the other, in the order of names, behind what
// plans list.
func (s *sharedStorages) pack() error {
	names := slices.Sorted(maps.Keys(s.place))
	var listed [NumArenas][]placedExtent
	for _, name := range names {
		if p := s.place[name]; p.listed {
			listed[p.arena] = append(listed[p.arena], placedExtent{extent{p.offset, Align(p.bytes)}, name})
		}
	}
	for a := range listed {
		var err error
		if s.bytes[a], err = endOf(listed[a]); err != nil {
			return fmt.Errorf("arena %q: %w", Arena(a), err)
		}
	}
	for _, name := range names {
		p := s.place[name]
		if p.listed {
			continue
		}
		p.offset = s.bytes[p.arena]
		s.bytes[p.arena] += Align(p.bytes)
		s.place[name] = p
	}
	return nil
}

// place fills the layout of one graph.
func (l *Layout) place(g *tenants, graph int, shared *sharedStorages, o *orders, in part) error {
	var step []dag.BufferID
	for i := range g.buffers {
		id := dag.BufferID(i)
		if !in.holds(graph, id) {
			l.Offset[i] = Elsewhere
			continue
		}
		if g.storage(id) != id {
			continue
		}
		if p, ok := shared.place[g.buffers[i].Name]; ok {
			l.Arena[i], l.Offset[i] = p.arena, p.offset
			continue
		}
		l.Arena[i] = StepArena
		step = append(step, id)
	}
	if err := l.placeStep(g, step, newLifetimes(o, step, func(b dag.BufferID) bool { return in.keeps(graph, b) }), in.listed[graph]); err != nil {
		return err
	}
	for i := range g.buffers {
		owner := g.storage(dag.BufferID(i))
		l.Arena[i], l.Offset[i] = l.Arena[owner], l.Offset[owner]
	}
	return in.listed[graph].reserve(l)
}

// Elsewhere is the offset of a buffer that lies in another memory.
const Elsewhere int64 = -1

// extent is bytes in use.
type extent struct{ offset, bytes int64 }

// firstFit is the lowest offset at which size bytes meet none of the extents,
// which are ordered by offset.
func firstFit(used []extent, size int64) int64 {
	var at int64
	for _, u := range used {
		if at+size <= u.offset {
			return at
		}
		at = max(at, u.offset+u.bytes)
	}
	return at
}

// CheckLayout verifies a layout against the definition: whenever two storages of
// the step arena share a byte, every use of one comes before every use of the
// other, in each step and into the next, by the graph and the layout's reuse
// edges alone. Storages of the other arenas, and those that keep their contents
// from step to step, share nothing. It walks two steps from every task, so it is
// for tests and small graphs.
func CheckLayout(g *dag.Graph, l *Layout) error {
	if len(l.Arena) != len(g.Buffers) || len(l.Offset) != len(g.Buffers) {
		return errors.New("the layout is for another number of buffers")
	}
	reach := reachTwoSteps(g, l)
	users := make([][]int, len(g.Buffers))
	for t := range g.Tasks {
		for _, a := range g.Tasks[t].Accesses {
			s := g.Storage(a.Buffer)
			users[s] = append(users[s], t)
		}
	}
	written := g.WrittenStorages()
	for x := range g.Buffers {
		bx := &g.Buffers[x]
		if l.Offset[x] == Elsewhere {
			continue
		}
		if l.Offset[x] < 0 || l.Offset[x]%Alignment != 0 || l.Offset[x]+bx.Bytes() > l.ArenaBytes[l.Arena[x]] {
			return fmt.Errorf("buffer %q at %d does not lie in its arena of %d bytes", bx.Name, l.Offset[x], l.ArenaBytes[l.Arena[x]])
		}
		if owner := g.Storage(dag.BufferID(x)); l.Offset[x] != l.Offset[owner] || l.Arena[x] != l.Arena[owner] {
			return fmt.Errorf("view %q lies apart from its storage", bx.Name)
		}
		for y := range x {
			by := &g.Buffers[y]
			if bx.ViewOf != dag.None || by.ViewOf != dag.None || l.Arena[x] != l.Arena[y] || l.Offset[y] == Elsewhere ||
				l.Offset[x] >= l.Offset[y]+by.Bytes() || l.Offset[y] >= l.Offset[x]+bx.Bytes() {
				continue
			}
			keep := func(b int) bool { return g.Carried(dag.BufferID(b)) || !written[b] && len(users[b]) > 0 }
			if l.Arena[x] != StepArena || keep(x) || keep(y) {
				return fmt.Errorf("buffers %q and %q share bytes, and one of them keeps its contents", bx.Name, by.Name)
			}
			if !apart(reach, users[x], users[y], len(g.Tasks)) && !apart(reach, users[y], users[x], len(g.Tasks)) {
				return fmt.Errorf("buffers %q and %q share bytes and may be in use at once", bx.Name, by.Name)
			}
		}
	}
	return nil
}

// apart reports whether each use of one storage reaches each use of the other in
// the same step, and those reach each use of the first in the next step.
func apart(reach [][]bool, first, second []int, n int) bool {
	for _, a := range first {
		for _, b := range second {
			if !reach[a][b] || !reach[b][n+a] {
				return false
			}
		}
	}
	return true
}

// reachTwoSteps says for each task of a step which tasks of it and of the next
// (at n more) come after it.
func reachTwoSteps(g *dag.Graph, l *Layout) [][]bool {
	n := len(g.Tasks)
	next := make([][]int, 2*n)
	add := func(from, to int) { next[from] = append(next[from], to) }
	for t := range n {
		id := dag.TaskID(t)
		for _, s := range g.Succs(id) {
			add(t, int(s))
			add(n+t, n+int(s))
		}
		for _, s := range g.CarriedSuccs(id) {
			add(t, n+int(s))
		}
		for _, s := range g.ReuseSuccs(id) {
			add(t, n+int(s))
		}
	}
	for _, e := range l.Reuse {
		add(int(e.From), int(e.To))
		add(n+int(e.From), n+int(e.To))
	}
	for _, e := range l.ReuseNext {
		add(int(e.From), n+int(e.To))
	}
	reach := make([][]bool, n)
	for t := range n {
		reach[t] = make([]bool, 2*n)
		stack := []int{t}
		for len(stack) > 0 {
			at := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			for _, to := range next[at] {
				if !reach[t][to] {
					reach[t][to] = true
					stack = append(stack, to)
				}
			}
		}
	}
	return reach
}
