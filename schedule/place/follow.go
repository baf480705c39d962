package place

import (
	"fmt"
	"maps"
	"slices"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule/ready"
)

// followTransfers takes the order of transfers on the engines from a plan that lists them. The plan must list exactly
// the transfers of the placed graph, each on an engine that can make it, or on any. The dependences must allow the order. What the plan
// leaves to any engine stays where the estimate has it, if the platform limits its engines: the plan may be for one that does not say how many there are.
func (pg *Graph) followTransfers() error {
	plan := pg.plan
	if err := pg.checkOutside(); err != nil || plan.Transfers == nil {
		return err
	}
	workers := len(pg.p.Workers)
	order := slices.Clone(pg.Order)
	for l := workers; l < len(order); l++ {
		order[l] = nil
	}
	seen, named, anywhere := make([]bool, pg.NumTasks()), pg.copiesByName(), make([]bool, pg.NumTasks())
	for _, engine := range plan.Transfers {
		l := slices.IndexFunc(pg.lanes, func(l Lane) bool { return l.Worker < 0 && l.Name == engine.Engine })
		if l < 0 && engine.Engine != anyEngine {
			return fmt.Errorf("the plan lists transfers of engine %q, which platform %q does not have", engine.Engine, pg.p.Name)
		}
		for i := range engine.Transfers {
			t, err := pg.listedTransfer(named, l, &engine.Transfers[i])
			if err != nil {
				return err
			}
			if seen[t] {
				return fmt.Errorf("the plan lists %q twice", engine.Transfers[i].Name)
			}
			seen[t] = true
			if anywhere[t] = l == noLane; !anywhere[t] {
				order[l] = append(order[l], t)
			}
		}
	}
	for t, m := range pg.moves {
		if m != nil && !seen[t] {
			return fmt.Errorf("the plan lists transfers and leaves out %q", pg.Name(dag.TaskID(t)))
		}
	}
	for l := workers; l < len(order); l++ {
		for _, t := range pg.Order[l] {
			if anywhere[t] {
				order[l] = append(order[l], t)
			}
		}
	}
	if _, stuck := pg.sort(order); stuck >= 0 {
		return fmt.Errorf("the plan's order of transfers contradicts the dependences: %q could never start", pg.Name(stuck))
	}
	pg.Order = order
	return nil
}

// sort orders the tasks of a period.
func (pg *Graph) sort(order [][]dag.TaskID) (sorted []dag.TaskID, stuck dag.TaskID) {
	if pg.plan.Lags == nil {
		return ready.Sort(pg.Links, nil, order)
	}
	lags := make([]int32, pg.NumTasks())
	for t := range lags {
		lags[t] = pg.Lag(dag.TaskID(t))
	}
	return ready.SortPeriod(pg.Links, lags, order)
}

// copiesByName finds the transfers of a step.
func (pg *Graph) copiesByName() map[string]dag.TaskID {
	named := map[string]dag.TaskID{}
	for t, m := range pg.moves {
		if m != nil {
			named[pg.Name(dag.TaskID(t))] = dag.TaskID(t)
		}
	}
	return named
}

// listedTransfer finds the task of a transfer that a plan lists for a lane.
func (pg *Graph) listedTransfer(named map[string]dag.TaskID, lane int, c *PlannedTransfer) (dag.TaskID, error) {
	t, ok := named[c.Name]
	if !ok {
		return 0, fmt.Errorf("the plan lists %q, which its placement of the tasks does not need", c.Name)
	}
	m := pg.moves[t]
	if is := pg.plannedTransfer(m); !is.equal(c) {
		return 0, fmt.Errorf("the plan lists %q with %s; its placement of the tasks needs %s", c.Name, c, &is)
	}
	if lane != noLane && !pg.Reaches(lane, m) {
		return 0, fmt.Errorf("the plan gives %q to engine %q, which does not reach from memory %q to %q", c.Name, pg.lanes[lane].Name, c.From, c.To)
	}
	return t, nil
}

func (c *PlannedTransfer) String() string {
	reader := ""
	if c.For != "" {
		reader = fmt.Sprintf(" for %q", c.For)
	}
	return fmt.Sprintf("%d bytes of %q, boxes %q, from %q to %q%s (%s)", c.Bytes, c.Buffer, c.Boxes, c.From, c.To, reader, c.Reason)
}

// checkOutside refuses a plan with other moves before the first step or after the last than the placed graph.
func (pg *Graph) checkOutside() error {
	for _, list := range []struct {
		when   string
		listed []PlannedTransfer
		moves  []*Move
	}{{"before the first step", pg.plan.Enter, pg.Enter}, {"after the last step", pg.plan.Leave, pg.Leave}} {
		if list.listed == nil {
			continue
		}
		if len(list.listed) != len(list.moves) {
			return fmt.Errorf("the plan lists %d transfers %s; its placement of the tasks needs %d", len(list.listed), list.when, len(list.moves))
		}
		for i, m := range list.moves {
			if is := pg.plannedTransfer(m); !is.equal(&list.listed[i]) {
				return fmt.Errorf("the plan lists %s %s; its placement of the tasks needs %s", &list.listed[i], list.when, &is)
			}
		}
	}
	return nil
}

// newSpillPlan notes the basis of evictions: the limits of memories, and an order by name of the tasks of the placed graph
// without evictions. The replicas that return are not known yet.
func newSpillPlan(p *platform.Platform, limits map[platform.MemoryID]int64, order []string) *SpillPlan {
	plan := &SpillPlan{Order: order}
	for _, m := range slices.Sorted(maps.Keys(limits)) {
		plan.Memories = append(plan.Memories, SpillLimit{p.Memories[m].Name, limits[m]})
	}
	return plan
}

// limits are the bytes that may be live in each memory.
func (r *SpillPlan) limits(p *platform.Platform) (map[platform.MemoryID]int64, error) {
	limits := map[platform.MemoryID]int64{}
	for _, l := range r.Memories {
		m, ok := p.MemoryByName(l.Memory)
		if !ok || p.IsHost(m) {
			return nil, fmt.Errorf("the plan lets contents leave memory %q, which platform %q does not have, or which is where they would go", l.Memory, p.Name)
		}
		limits[m] = l.Bytes
	}
	return limits, nil
}

// started is the listed order of the tasks of the placed graph without evictions. The list must
// have each task once, keep the dependences, and keep the order of each worker in the plan.
func (r *SpillPlan) started(pg *Graph) ([]dag.TaskID, error) {
	position := make([]int, pg.NumTasks()) // from 1 on; 0 means not listed
	order := make([]dag.TaskID, 0, len(r.Order))
	copies := pg.copiesByName()
	for i, name := range r.Order {
		t, ok := copies[name]
		if origin, is := pg.Origin.TaskByName(name); is {
			t, ok = pg.PlacedAs(origin), true
		}
		if !ok || position[t] > 0 {
			return nil, fmt.Errorf("the plan's order of tasks and transfers names %q twice, or its placement of the tasks does not need it", name)
		}
		order, position[t] = append(order, t), i+1
	}
	for t, at := range position {
		if at == 0 {
			return nil, fmt.Errorf("the plan's order of tasks and transfers leaves out %q", pg.Name(dag.TaskID(t)))
		}
		for _, before := range pg.Preds(dag.TaskID(t)) {
			if position[before] > at {
				return nil, fmt.Errorf("the plan's order of tasks and transfers contradicts the dependences: %q has to come before %q", pg.Name(dag.TaskID(before)), pg.Name(dag.TaskID(t)))
			}
		}
	}
	for _, list := range pg.plan.Order {
		for k := 1; k < len(list); k++ {
			if a, b := pg.PlacedAs(list[k-1]), pg.PlacedAs(list[k]); position[a] > position[b] {
				return nil, fmt.Errorf("the plan's order of tasks and transfers has %q before %q, and their worker runs them the other way round", pg.Name(b), pg.Name(a))
			}
		}
	}
	return order, nil
}

// returning adds the replicas that come back in every step; nil stays nil.
func (r *SpillPlan) returning(streamed map[string]bool) *SpillPlan {
	if r == nil {
		return nil
	}
	with := *r
	with.Returning = slices.Sorted(maps.Keys(streamed))
	return &with
}
