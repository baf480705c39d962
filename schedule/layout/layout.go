package layout

import (
	"fmt"

	"dahl/dag"
	"dahl/platform"
)

// Alignment is the alignment of every storage and arena, in bytes: a cache line, and the widest vector register.
const Alignment = 64

// Align rounds a size up to Alignment. The versions of a buffer lie one behind the other, each from the aligned end
// of the one before on.
func Align(bytes int64) int64 { return (bytes + Alignment - 1) &^ (Alignment - 1) }

// Arena is a group of storages with one lifetime.
type Arena uint8

// The arenas. Network and Data keep their contents for the whole run, and all graphs of a program
// share them. Step is laid out anew for every graph; storages that are never live together share
// its bytes. Scratch is the workspace of the kernels, an equal part for each worker.
const (
	NetworkArena Arena = iota
	DataArena
	StepArena
	ScratchArena
	NumArenas
)

// ArenaNames are the names of the arenas in files.
func ArenaNames() [NumArenas]string { return [...]string{"network", "data", "step", "scratch"} }

func (a Arena) String() string {
	if a < NumArenas {
		return ArenaNames()[a]
	}
	return fmt.Sprintf("invalid(%d)", uint8(a))
}

// Elsewhere is the offset of a buffer that lies in another memory.
const Elsewhere int64 = -1

// Layout is where every storage of one graph lies in the arenas of a memory.
type Layout struct {
	*Places
	In platform.MemoryID
	// ArenaBytes is the size of each arena, and so the peak in the memory.
	ArenaBytes [NumArenas]int64
	// Reuse and ReuseNext make the sharing of bytes safe, within a step and from one step to the
	// next, beyond the graph's own orders. A run that uses the offsets keeps to them.
	Reuse, ReuseNext []dag.Edge
	SavedBytes       int64 // compared with giving every storage bytes of its own

	orders func() (reuse, next []dag.Edge)
}

// Places are where the buffers of a graph lie, each in its memory. All layouts of the graph have them in common.
type Places struct {
	Memory  []platform.MemoryID // by buffer
	Arenas  []Arena             // by buffer; views repeat their owner's
	Offsets []int64             // by buffer, within its arena; the first of several versions
}

// Arena is the arena of a buffer in the memory.
func (l *Layout) Arena(b dag.BufferID) Arena {
	if l.Places == nil || l.Memory[b] != l.In {
		return NetworkArena
	}
	return l.Arenas[b]
}

// Offset is where a buffer lies in its arena, or [Elsewhere].
func (l *Layout) Offset(b dag.BufferID) int64 {
	if l.Places == nil || l.Memory[b] != l.In {
		return Elsewhere
	}
	return l.Offsets[b]
}

// put puts a buffer of the memory somewhere.
func (l *Layout) put(b dag.BufferID, a Arena, offset int64) { l.Arenas[b], l.Offsets[b] = a, offset }

// FindOrders finds Reuse and ReuseNext of a layout by [Memories], for whoever means to use it.
func (l *Layout) FindOrders() {
	if l.orders != nil {
		l.Reuse, l.ReuseNext = l.orders()
		l.orders = nil
	}
}

// TotalBytes is the size of the arenas together.
func (l *Layout) TotalBytes() (total int64) {
	for _, bytes := range l.ArenaBytes {
		total += bytes
	}
	return total
}

// Graph describes a graph for a layout: its buffers, their memories, their users, and the order of these.
type Graph struct {
	Name             string
	Buffers          []dag.Buffer
	Versions         []int32 // by buffer: number of versions; nil means one of each
	Links            *dag.Links
	Carried, Written []bool // by storage
	Each             func(t dag.TaskID, use dag.Use)
	TaskName         func(t dag.TaskID) string

	Order        [][]dag.TaskID      // lists of a plan; nil if the graph alone orders its tasks
	Apart        bool                // no two storages share bytes
	Memory       []platform.MemoryID // by buffer
	Keeps        []bool              // by buffer: its contents are needed outside the graph; nil means none
	ScratchBytes []int64             // by memory; nil means none
	Listed       []*Listed           // by memory; a nil entry means that a plan lists no places

	in     [][]dag.BufferID // by memory: the buffers there
	places *Places
}

// findBuffers finds the buffers in each memory.
func (g *Graph) findBuffers(memories int) {
	g.in = make([][]dag.BufferID, memories)
	g.places = &Places{Memory: g.Memory, Arenas: make([]Arena, len(g.Buffers)), Offsets: make([]int64, len(g.Buffers))}
	for b, m := range g.Memory {
		g.in[m] = append(g.in[m], dag.BufferID(b))
	}
}

// inOneMemory is a graph with all buffers in memory 0.
func inOneMemory(g *dag.Graph) *Graph {
	return &Graph{Name: g.Name, Buffers: g.Buffers, Versions: g.AllVersions(), Links: g.Links, Carried: g.CarriedStorages(), Written: g.WrittenStorages(), Each: g.Body().Each,
		TaskName: func(t dag.TaskID) string { return g.Tasks[t].Name }, Memory: make([]platform.MemoryID, len(g.Buffers)), Listed: make([]*Listed, 1)}
}

// Program places every storage of every graph of a program in one memory.
//
// Parameters and optimiser state go to the network arena, inputs that no task of
// any graph writes to the data arena; both depend on the program alone, in the
// order of names, so that all graphs find them at the same place. Everything else
// goes to the step arena, which is laid out for each graph by itself.
//
// Two storages of the step arena share bytes only if the graph puts every use of one before
// every use of the other. Layout.ReuseNext holds the orders for the next step.
//
// ScratchBytes is the size of the scratch arena of each graph. Nil means none.
func Program(prog *dag.Program, scratchBytes []int64) ([]*Layout, error) {
	graphs := make([]*Graph, len(prog.Graphs))
	for i, g := range prog.Graphs {
		graphs[i] = inOneMemory(g)
		if scratchBytes != nil {
			graphs[i].ScratchBytes = scratchBytes[i : i+1]
		}
	}
	for _, g := range graphs {
		g.findBuffers(1)
	}
	orders, err := ordersOf(graphs)
	if err != nil {
		return nil, err
	}
	layouts, err := inMemory(0, prog.Name, graphs, orders)
	for _, l := range layouts {
		l.FindOrders()
	}
	return layouts, err
}

// Memories places the storages of the graphs of a program in the memories where they are, each as
// Program does. The result is by graph and memory. With an order of a plan, storages also share bytes where only the
// plan keeps their uses apart; Layout.Reuse then holds orders within a step. [Layout.FindOrders] finds them, and those for the next step.
func Memories(program string, graphs []*Graph, memories []platform.Memory) ([][]*Layout, error) {
	for _, g := range graphs {
		g.findBuffers(len(memories))
	}
	orders, err := ordersOf(graphs)
	if err != nil {
		return nil, err
	}
	layouts := make([][]*Layout, len(graphs))
	for m := range memories {
		here, err := inMemory(platform.MemoryID(m), program, graphs, orders)
		if err != nil {
			return nil, fmt.Errorf("memory %q: %w", memories[m].Name, err)
		}
		for i, l := range here {
			layouts[i] = append(layouts[i], l)
		}
	}
	return layouts, nil
}

// inMemory places the storages of every graph that are in a memory.
func inMemory(m platform.MemoryID, program string, graphs []*Graph, orders []*orders) ([]*Layout, error) {
	shared, err := placeShared(m, graphs)
	if err != nil {
		return nil, fmt.Errorf("program %q: %w", program, err)
	}
	layouts := make([]*Layout, len(graphs))
	for i, g := range graphs {
		l := &Layout{Places: g.places, In: m}
		l.ArenaBytes[NetworkArena], l.ArenaBytes[DataArena] = shared.bytes[NetworkArena], shared.bytes[DataArena]
		if g.ScratchBytes != nil {
			l.ArenaBytes[ScratchArena] = Align(g.ScratchBytes[m])
		}
		if err := l.place(m, g, shared, orders[i]); err != nil {
			return nil, fmt.Errorf("graph %q: %w", g.Name, err)
		}
		layouts[i] = l
	}
	return layouts, nil
}

// place fills the layout of one graph.
func (l *Layout) place(m platform.MemoryID, g *Graph, shared *sharedStorages, o *orders) error {
	var step []dag.BufferID
	for _, id := range g.in[m] {
		if g.storage(id) != id {
			continue
		}
		if p, ok := shared.place[g.Buffers[id].Name]; ok {
			l.put(id, p.arena, p.offset)
			continue
		}
		step = append(step, id)
	}
	lives := newLifetimes(o, step)
	if err := l.placeStep(g, step, lives, g.Listed[m]); err != nil {
		return err
	}
	for _, id := range g.in[m] {
		owner := g.storage(id)
		l.put(id, l.Arenas[owner], l.Offsets[owner])
	}
	return g.Listed[m].reserve(l)
}

// bytes is the size of a storage in a layout, with all its versions.
func (g *Graph) bytes(storage dag.BufferID) int64 {
	return Align(g.Buffers[storage].Bytes()) * int64(g.versions(storage))
}

// versions is the number of versions of a storage.
func (g *Graph) versions(storage dag.BufferID) int32 {
	if g.Versions == nil {
		return 1
	}
	return g.Versions[storage]
}

// storage is the buffer that owns the storage of another.
func (g *Graph) storage(b dag.BufferID) dag.BufferID {
	if of := g.Buffers[b].ViewOf; of != dag.None {
		return of
	}
	return b
}
