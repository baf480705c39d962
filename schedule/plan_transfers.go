package schedule

import (
	"fmt"
	"slices"

	"dahl/dag"
)

// PlannedCopies is what a copy engine moves in a step, in order.
type PlannedCopies struct {
	Engine string        `json:"engine"`
	Copies []PlannedCopy `json:"copies"`
}

// PlannedCopy is one movement. Its name, that of a task of the placed graph, tells it
// from others; the rest says what it is.
type PlannedCopy struct {
	Name     string   `json:"name"`
	Buffer   string   `json:"buffer"`
	Boxes    []string `json:"boxes"`
	From     string   `json:"from"`
	To       string   `json:"to"`
	For      string   `json:"for"`
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

// Record returns a plan of a graph with the copies and offsets that were decided for it.
func (placed *Placed) Record(graph int, plan *Plan) *Plan {
	recorded := *plan
	pg := placed.Graphs[graph]
	recorded.Transfers, recorded.Places = pg.plannedCopies(placed), pg.plannedPlaces(placed)
	return &recorded
}

func (pg *PlacedGraph) plannedCopies(placed *Placed) []PlannedCopies {
	var all []PlannedCopies
	for l := len(placed.Platform.Workers); l < len(placed.Lanes); l++ {
		engine := PlannedCopies{Engine: placed.Lanes[l].Name, Copies: []PlannedCopy{}}
		for _, t := range pg.Order[l] {
			engine.Copies = append(engine.Copies, pg.plannedCopy(placed, t))
		}
		all = append(all, engine)
	}
	return all
}

func (pg *PlacedGraph) plannedCopy(placed *Placed, t dag.TaskID) PlannedCopy {
	m, memories := pg.Moves[t], placed.Platform.Memories
	c := PlannedCopy{Name: pg.Graph.Tasks[t].Name, Buffer: pg.Origin.Buffers[m.Buffer].Name, From: memories[m.From].Name, To: memories[m.To].Name,
		For: pg.Origin.Tasks[m.For].Name, NextStep: m.NextStep, Reason: m.Reason, Bytes: m.Bytes}
	_, boxes := pg.Origin.AtomBoxes(m.Atoms)
	for _, box := range boxes {
		c.Boxes = append(c.Boxes, box.String())
	}
	return c
}

func (pg *PlacedGraph) plannedPlaces(placed *Placed) []PlannedPlace {
	var all []PlannedPlace
	for b := range pg.Graph.Buffers {
		if pg.Graph.Buffers[b].ViewOf == dag.None {
			l := pg.Layouts[pg.Memory[b]]
			all = append(all, PlannedPlace{placed.Platform.Memories[pg.Memory[b]].Name, pg.Graph.Buffers[b].Name, l.Arena[b].String(), l.Offset[b]})
		}
	}
	return all
}

// followCopies takes the order of the copies on the engines from a plan that lists them.
// It must list exactly those of the placed graph, each on an engine that can make it, and
// in an order that the dependences allow.
func (pg *PlacedGraph) followCopies(placed *Placed, plan *Plan) error {
	if plan.Transfers == nil {
		return nil
	}
	workers := len(placed.Platform.Workers)
	order := slices.Clone(pg.Order)
	for l := workers; l < len(order); l++ {
		order[l] = nil
	}
	seen := make([]bool, len(pg.Graph.Tasks))
	for _, engine := range plan.Transfers {
		l := slices.IndexFunc(placed.Lanes, func(l Lane) bool { return l.Worker < 0 && l.Name == engine.Engine })
		if l < 0 {
			return fmt.Errorf("the plan lists copies of engine %q, which platform %q does not have", engine.Engine, placed.Platform.Name)
		}
		for i := range engine.Copies {
			t, err := pg.listedCopy(placed, l, &engine.Copies[i])
			if err != nil {
				return err
			}
			if seen[t] {
				return fmt.Errorf("the plan lists %q twice", engine.Copies[i].Name)
			}
			seen[t] = true
			order[l] = append(order[l], t)
		}
	}
	for t, m := range pg.Moves {
		if m != nil && !seen[t] {
			return fmt.Errorf("the plan lists copies and leaves out %q", pg.Graph.Tasks[t].Name)
		}
	}
	if _, stuck := topological(pg.Graph, nil, order); stuck >= 0 {
		return fmt.Errorf("the plan's order of copies contradicts the dependences: %q could never start", pg.Graph.Tasks[stuck].Name)
	}
	pg.Order = order
	return nil
}

// listedCopy finds the task of a copy that a plan lists for a lane.
func (pg *PlacedGraph) listedCopy(placed *Placed, lane int, c *PlannedCopy) (dag.TaskID, error) {
	t, ok := pg.Graph.TaskByName(c.Name)
	if !ok || pg.Moves[t] == nil {
		return 0, fmt.Errorf("the plan lists %q, which its placement of the tasks does not need", c.Name)
	}
	if is := pg.plannedCopy(placed, t); !is.equal(c) {
		return 0, fmt.Errorf("the plan lists %q with %d bytes of boxes %q from %q to %q; its placement of the tasks needs %d bytes of %q from %q to %q",
			c.Name, c.Bytes, c.Boxes, c.From, c.To, is.Bytes, is.Boxes, is.From, is.To)
	}
	if !placed.Reaches(lane, pg.Moves[t]) {
		return 0, fmt.Errorf("the plan gives %q to engine %q, which does not reach from memory %q to %q", c.Name, placed.Lanes[lane].Name, c.From, c.To)
	}
	return t, nil
}

func (c *PlannedCopy) equal(d *PlannedCopy) bool {
	return c.Buffer == d.Buffer && slices.Equal(c.Boxes, d.Boxes) && c.From == d.From && c.To == d.To && c.For == d.For &&
		c.NextStep == d.NextStep && c.Reason == d.Reason && c.Bytes == d.Bytes
}

// checkPlaces refuses a plan whose offsets are not those of the layout.
func (pg *PlacedGraph) checkPlaces(placed *Placed, plan *Plan) error {
	if plan.Places == nil {
		return nil
	}
	is := pg.plannedPlaces(placed)
	for _, p := range plan.Places {
		if !slices.Contains(is, p) {
			return fmt.Errorf("the plan puts buffer %q at %d of arena %q of memory %q, where the layout does not put it", p.Buffer, p.Offset, p.Arena, p.Memory)
		}
	}
	if len(is) != len(plan.Places) {
		return fmt.Errorf("the plan places %d buffers, the layout %d", len(plan.Places), len(is))
	}
	return nil
}
