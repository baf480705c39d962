package place

import (
	"fmt"
	"slices"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule/layout"
)

// Written is the part of a plan about memories. A nil list says nothing. Transfers lists the transfers of each copy
// engine in a step. Enter and Leave list the moves before the first step and after the last. Places says where the
// replicas of the storages lie in each memory, and Arenas how much is reserved there. Spill is the basis of evictions
// during a step. A nil Spill means that there are none. Versions says how many versions a buffer has in each memory,
// in place of the graph; a buffer that is not listed has one. PartBytes is the size of the parts of transfers that
// are staged through the host memory. Zero means that they go whole.
type Written struct {
	Versions  []PlannedVersions `json:"copies"`
	Transfers []EngineTransfers `json:"transfers"`
	Enter     []PlannedTransfer `json:"enter"`
	Leave     []PlannedTransfer `json:"leave"`
	Places    []PlannedPlace    `json:"places"`
	Arenas    []PlannedArena    `json:"arenas"`
	Spill     *SpillPlan        `json:"room"`
	PartBytes int64             `json:"part_bytes"`
}

// PlannedVersions is the number of versions of a buffer in a memory ([dag.Buffer.Versions]).
type PlannedVersions struct {
	Memory   string `json:"memory"`
	Buffer   string `json:"buffer"`
	Versions int    `json:"copies"`
}

// VersionsIn is the number of versions of each storage, by memory and buffer. Nil means as many as the graph says.
func (w *Written) VersionsIn(g *dag.Graph, p *platform.Platform) ([][]int32, error) {
	if w.Versions == nil {
		return nil, nil
	}
	all := make([][]int32, len(p.Memories))
	for m := range all {
		all[m] = slices.Repeat([]int32{1}, len(g.Buffers))
	}
	listed := map[location]bool{}
	for _, c := range w.Versions {
		m, ok := p.MemoryByName(c.Memory)
		b, known := g.BufferByName(c.Buffer)
		switch at := (location{b, m}); {
		case !ok || !known:
			return nil, fmt.Errorf("the plan has %d versions of buffer %q in memory %q; there is no such buffer or no such memory", c.Versions, c.Buffer, c.Memory)
		case c.Versions < 1 || c.Versions > dag.MaxVersions:
			return nil, fmt.Errorf("the plan has %d versions of buffer %q in memory %q; write a number from 1 to %d", c.Versions, c.Buffer, c.Memory, dag.MaxVersions)
		case listed[at]:
			return nil, fmt.Errorf("the plan lists the versions of buffer %q in memory %q twice", c.Buffer, c.Memory)
		default:
			listed[at], all[m][b] = true, int32(c.Versions)
		}
	}
	return all, nil
}

// listed are the names of the transfers before any eviction; nil where the plan does not say.
func (w *Written) listed() map[string]bool {
	if w.Transfers == nil {
		return nil
	}
	names := map[string]bool{}
	if w.Spill != nil {
		for _, name := range w.Spill.Order { // tasks among them
			names[name] = true
		}
		return names
	}
	for _, engine := range w.Transfers {
		for i := range engine.Transfers {
			names[engine.Transfers[i].Name] = true
		}
	}
	return names
}

// checkVersions refuses versions of a buffer in a memory where the graph has none.
func (pg *Graph) checkVersions() error {
	for _, c := range pg.plan.Versions {
		m, _ := pg.p.MemoryByName(c.Memory)
		b, _ := pg.Origin.BufferByName(c.Buffer)
		if used := pg.moves == nil && m == pg.host || pg.moves != nil && pg.replicas.use.Has(int32(b), m); !used {
			return fmt.Errorf("the plan has versions of buffer %q in memory %q, which its placement of the tasks does not need there", c.Buffer, c.Memory)
		}
	}
	return nil
}

// anyEngine stands for the engines of memories whose devices do not limit them. Their transfers have no order.
const anyEngine = "any"

// EngineTransfers lists the transfers of a copy engine in a step, in order.
type EngineTransfers struct {
	Engine    string            `json:"engine"`
	Transfers []PlannedTransfer `json:"copies"`
}

// PlannedTransfer is one transfer. Name is the task's name in the placed graph, and unique within a step. A move
// before the first step or after the last has no name, and one after the last has no reader For.
type PlannedTransfer struct {
	Name     string   `json:"name,omitempty"`
	Buffer   string   `json:"buffer"`
	Boxes    []string `json:"boxes"`
	From     string   `json:"from"`
	To       string   `json:"to"`
	For      string   `json:"for,omitempty"`
	NextStep bool     `json:"next_step,omitempty"`
	Reason   Reason   `json:"reason"`
	Bytes    int64    `json:"bytes"`
}

// PlannedPlace is where a replica of a storage lies in a memory.
type PlannedPlace struct {
	Memory string `json:"memory"`
	Buffer string `json:"buffer"`
	Arena  string `json:"arena"`
	Offset int64  `json:"offset"`
}

// PlannedArena is the size of an arena of a memory.
type PlannedArena struct {
	Memory string `json:"memory"`
	Arena  string `json:"arena"`
	Bytes  int64  `json:"bytes"`
}

// SpillPlan is the basis of evictions and reloads. They follow from it and from the graph alone, whatever tasks and
// transfers are later found to take.
type SpillPlan struct {
	Memories []SpillLimit `json:"memories"` // those that cannot hold all
	// Order is the tasks and transfers of a step as they start, before any eviction.
	Order []string `json:"order"`
	// Returning are the replicas that come there in every step, of any graph of the program, though
	// their contents are kept from step to step.
	Returning []string `json:"returning,omitempty"`
}

// SpillLimit is the bytes that the contents of a memory may take at once.
type SpillLimit struct {
	Memory string `json:"memory"`
	Bytes  int64  `json:"bytes"`
}

// Written writes the decisions for a graph down.
func (placed *Program) Written(graph int) Written {
	pg, layouts := placed.Graphs[graph], placed.Layouts()[graph]
	w := writtenPlaces(placed.Platform, pg.buffers(), layouts)
	w.Transfers, w.Enter, w.Leave, w.Spill, w.Versions = pg.plannedTransfers(), pg.plannedMoves(pg.Enter), pg.plannedMoves(pg.Leave), pg.spillPlan, pg.plan.Versions
	if slices.ContainsFunc(pg.moves, func(m *Move) bool { return m != nil && m.Parts > 0 }) {
		w.PartBytes = pg.partBytes
	}
	return w
}

// OnHost writes down where the buffers of a graph lie that is in the host memory alone; layouts
// are by memory.
func OnHost(g *dag.Graph, p *platform.Platform, layouts []*layout.Layout) Written {
	return writtenPlaces(p, unmoved(g, p.HostMemory()), layouts)
}

func (pg *Graph) plannedTransfers() []EngineTransfers {
	all := []EngineTransfers{}
	add := func(engine string, copies []dag.TaskID) {
		list := EngineTransfers{Engine: engine, Transfers: []PlannedTransfer{}}
		for _, t := range copies {
			c := pg.plannedTransfer(pg.moves[t])
			c.Name = pg.Name(t)
			list.Transfers = append(list.Transfers, c)
		}
		all = append(all, list)
	}
	for l := len(pg.p.Workers); l < len(pg.lanes); l++ {
		add(pg.lanes[l].Name, pg.Order[l])
	}
	if unlaned := pg.Unlaned(); len(unlaned) > 0 {
		add(anyEngine, unlaned)
	}
	return all
}

func (pg *Graph) plannedMoves(moves []*Move) []PlannedTransfer {
	all := []PlannedTransfer{}
	for _, m := range moves {
		all = append(all, pg.plannedTransfer(m))
	}
	return all
}

func (pg *Graph) plannedTransfer(m *Move) PlannedTransfer {
	memories := pg.p.Memories
	c := PlannedTransfer{Buffer: pg.Origin.Buffers[m.Buffer].Name, From: memories[m.From].Name, To: memories[m.To].Name,
		NextStep: m.NextStep, Reason: m.Reason, Bytes: m.Bytes}
	if m.For >= 0 {
		c.For = pg.Origin.Tasks[m.For].Name
	}
	for _, box := range pg.boxes(m) {
		c.Boxes = append(c.Boxes, box.String())
	}
	return c
}

func (c *PlannedTransfer) equal(d *PlannedTransfer) bool {
	return c.Buffer == d.Buffer && slices.Equal(c.Boxes, d.Boxes) && c.From == d.From && c.To == d.To && c.For == d.For &&
		c.NextStep == d.NextStep && c.Reason == d.Reason && c.Bytes == d.Bytes
}

// writtenPlaces are the places of storages in the memories where they are, in the same order, and
// the arenas.
func writtenPlaces(p *platform.Platform, w *writtenOut, layouts []*layout.Layout) Written {
	places, arenas := []PlannedPlace{}, []PlannedArena{}
	for b := range w.list {
		if w.list[b].ViewOf == dag.None {
			l := layouts[w.memory[b]]
			places = append(places, PlannedPlace{p.Memories[w.memory[b]].Name, w.list[b].Name, l.Arena(dag.BufferID(b)).String(), l.Offset(dag.BufferID(b))})
		}
	}
	for m, l := range layouts {
		for a, bytes := range l.ArenaBytes {
			arenas = append(arenas, PlannedArena{p.Memories[m].Name, layout.Arena(a).String(), bytes})
		}
	}
	return Written{Places: places, Arenas: arenas}
}

// listedPlaces are the places of a plan by memory; all nil where it lists none.
func (pg *Graph) listedPlaces() ([]*layout.Listed, error) {
	plan := pg.plan
	all := make([]*layout.Listed, len(pg.p.Memories))
	if plan.Places == nil {
		return all, nil
	}
	for m := range all {
		all[m] = &layout.Listed{Places: map[string]layout.Place{}}
	}
	w, storages, arenas := pg.buffers(), map[string]dag.BufferID{}, layout.ArenaNames()
	for b := range w.list {
		if w.list[b].ViewOf == dag.None {
			storages[w.list[b].Name] = dag.BufferID(b)
		}
	}
	for _, p := range plan.Places {
		m, ok := pg.p.MemoryByName(p.Memory)
		b, known := storages[p.Buffer]
		a := slices.Index(arenas[:], p.Arena)
		if !ok || !known || w.memory[b] != m || a < 0 {
			return nil, fmt.Errorf("the plan puts buffer %q into arena %q of memory %q, which its placement of the tasks does not need", p.Buffer, p.Arena, p.Memory)
		}
		if _, twice := all[m].Places[p.Buffer]; twice {
			return nil, fmt.Errorf("the plan places buffer %q twice", p.Buffer)
		}
		all[m].Places[p.Buffer] = layout.Place{Arena: layout.Arena(a), Offset: p.Offset}
	}
	for _, r := range plan.Arenas {
		m, ok := pg.p.MemoryByName(r.Memory)
		a := slices.Index(arenas[:], r.Arena)
		if !ok || a < 0 || r.Bytes < 0 {
			return nil, fmt.Errorf("the plan reserves %d bytes for arena %q of memory %q; platform %q has no such memory, or the arena is not one of %q",
				r.Bytes, r.Arena, r.Memory, pg.p.Name, arenas)
		}
		all[m].ArenaBytes[a] = r.Bytes
	}
	return all, nil
}
