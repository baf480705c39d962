package schedule

import (
	"fmt"
	"slices"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule/layout"
)

// anyEngine stands for the engines of memories whose devices do not limit them. The copies
// that they make have no order.
const anyEngine = "any"

// PlannedCopies is what a copy engine moves in a step, in order.
type PlannedCopies struct {
	Engine string        `json:"engine"`
	Copies []PlannedCopy `json:"copies"`
}

// PlannedCopy is one movement. Its name, that of a task of the placed graph, tells it
// from others of a step; the rest says what it is. What moves before the first step or
// after the last has none, and what leaves is for no task.
type PlannedCopy struct {
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

// PlannedPlace is where an instance of a storage lies in a memory.
type PlannedPlace struct {
	Memory string `json:"memory"`
	Buffer string `json:"buffer"`
	Arena  string `json:"arena"`
	Offset int64  `json:"offset"`
}

// PlannedArena is what is reserved for an arena of a memory.
type PlannedArena struct {
	Memory string `json:"memory"`
	Arena  string `json:"arena"`
	Bytes  int64  `json:"bytes"`
}

// PlannedRoom is what decides which contents leave a memory and come back. The decision
// follows from it and from the graph alone, so that it is the same whatever tasks and
// copies are later found to take.
type PlannedRoom struct {
	Memories []PlannedLimit `json:"memories"` // those that cannot hold all
	// Order is the tasks and copies of a step as they start, before any contents leave.
	Order []string `json:"order"`
	// Returning are the instances that come back in every step, of any graph of the program.
	Returning []string `json:"returning,omitempty"`
}

// PlannedLimit is the bytes that the contents of a memory may take at once.
type PlannedLimit struct {
	Memory string `json:"memory"`
	Bytes  int64  `json:"bytes"`
}

// Record returns a plan of a graph with what was decided for it.
func (placed *Placed) Record(graph int, plan *Plan) *Plan {
	recorded := *plan
	pg, layouts := placed.Graphs[graph], placed.Layouts()[graph]
	recorded.Transfers, recorded.Places, recorded.Arenas = pg.plannedCopies(placed), plannedPlaces(placed.Platform, pg.buffers(), layouts), plannedArenas(placed.Platform, layouts)
	recorded.Enter, recorded.Leave, recorded.Room = pg.plannedMoves(placed, pg.Enter), pg.plannedMoves(placed, pg.Leave), pg.room
	return &recorded
}

func (pg *PlacedGraph) plannedCopies(placed *Placed) []PlannedCopies {
	all := []PlannedCopies{}
	add := func(engine string, copies []dag.TaskID) {
		list := PlannedCopies{Engine: engine, Copies: []PlannedCopy{}}
		for _, t := range copies {
			c := pg.plannedCopy(placed, pg.moves[t])
			c.Name = pg.name(t)
			list.Copies = append(list.Copies, c)
		}
		all = append(all, list)
	}
	for l := len(placed.Platform.Workers); l < len(placed.Lanes); l++ {
		add(placed.Lanes[l].Name, pg.Order[l])
	}
	if unlaned := pg.Unlaned(placed.Platform); len(unlaned) > 0 {
		add(anyEngine, unlaned)
	}
	return all
}

func (pg *PlacedGraph) plannedMoves(placed *Placed, moves []*Move) []PlannedCopy {
	all := []PlannedCopy{}
	for _, m := range moves {
		all = append(all, pg.plannedCopy(placed, m))
	}
	return all
}

func (pg *PlacedGraph) plannedCopy(placed *Placed, m *Move) PlannedCopy {
	memories := placed.Platform.Memories
	c := PlannedCopy{Buffer: pg.Origin.Buffers[m.Buffer].Name, From: memories[m.From].Name, To: memories[m.To].Name,
		NextStep: m.NextStep, Reason: m.Reason, Bytes: m.Bytes}
	if m.For >= 0 {
		c.For = pg.Origin.Tasks[m.For].Name
	}
	_, boxes := pg.Origin.AtomBoxes(m.Atoms)
	for _, box := range boxes {
		c.Boxes = append(c.Boxes, box.String())
	}
	return c
}

func (c *PlannedCopy) equal(d *PlannedCopy) bool {
	return c.Buffer == d.Buffer && slices.Equal(c.Boxes, d.Boxes) && c.From == d.From && c.To == d.To && c.For == d.For &&
		c.NextStep == d.NextStep && c.Reason == d.Reason && c.Bytes == d.Bytes
}

// plannedPlaces are those of storages in the memories where they are; in the same order.
func plannedPlaces(p *platform.Platform, w *writtenOut, layouts []*layout.Layout) []PlannedPlace {
	all := []PlannedPlace{}
	for b := range w.list {
		if w.list[b].ViewOf == dag.None {
			l := layouts[w.memory[b]]
			all = append(all, PlannedPlace{p.Memories[w.memory[b]].Name, w.list[b].Name, l.Arena[b].String(), l.Offset[b]})
		}
	}
	return all
}

func plannedArenas(p *platform.Platform, layouts []*layout.Layout) []PlannedArena {
	all := []PlannedArena{}
	for m, l := range layouts {
		for a, bytes := range l.ArenaBytes {
			all = append(all, PlannedArena{p.Memories[m].Name, layout.Arena(a).String(), bytes})
		}
	}
	return all
}

// listedPlaces are the places of a plan by memory; nil where it lists none.
func (pg *PlacedGraph) listedPlaces(placed *Placed, plan *Plan) ([]*layout.Listed, error) {
	if plan.Places == nil {
		return nil, nil
	}
	all := make([]*layout.Listed, len(placed.Platform.Memories))
	for m := range all {
		all[m] = &layout.Listed{Places: map[string]layout.Place{}}
	}
	w, storages := pg.buffers(), map[string]dag.BufferID{}
	for b := range w.list {
		if w.list[b].ViewOf == dag.None {
			storages[w.list[b].Name] = dag.BufferID(b)
		}
	}
	for _, p := range plan.Places {
		m, ok := placed.Platform.MemoryByName(p.Memory)
		b, known := storages[p.Buffer]
		a := slices.Index(layout.ArenaNames[:], p.Arena)
		if !ok || !known || w.memory[b] != m || a < 0 {
			return nil, fmt.Errorf("the plan puts buffer %q into arena %q of memory %q, which its placement of the tasks does not need", p.Buffer, p.Arena, p.Memory)
		}
		if _, twice := all[m].Places[p.Buffer]; twice {
			return nil, fmt.Errorf("the plan places buffer %q twice", p.Buffer)
		}
		all[m].Places[p.Buffer] = layout.Place{Arena: layout.Arena(a), Offset: p.Offset}
	}
	for _, r := range plan.Arenas {
		m, ok := placed.Platform.MemoryByName(r.Memory)
		a := slices.Index(layout.ArenaNames[:], r.Arena)
		if !ok || a < 0 || r.Bytes < 0 {
			return nil, fmt.Errorf("the plan reserves %d bytes for arena %q of memory %q; platform %q has no such memory, or the arena is not one of %q",
				r.Bytes, r.Arena, r.Memory, placed.Platform.Name, layout.ArenaNames)
		}
		all[m].ArenaBytes[a] = r.Bytes
	}
	return all, nil
}
