package schedule

import (
	"cmp"
	"fmt"
	"slices"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule/layout"
	"dahl/schedule/place"
)

// Choice says what a [Decision] is to rest on.
type Choice struct {
	// Policy plans the graphs for which Plans has nothing, or decides while they run. The
	// zero value is HEFT.
	Policy PolicyInfo
	// Plans are by graph; nil, or a nil entry: the policy decides. Beside the plans of some
	// graphs the others are planned too, by HEFT where the policy does not plan.
	Plans []*Plan
	// Seed is for policies that draw random numbers; they find it in [Problem.Seed].
	Seed uint64
}

// Decision is all that is decided before a program runs: where each task goes, or by which
// policy that is decided, what moves between memories, and where every buffer lies.
// simulate.Run and execute.New take it, and decide nothing themselves. It is immutable.
type Decision struct {
	Priced *Priced // with the variants of the plans, and their copies of buffers
	Policy PolicyInfo
	Graphs []Decided // by graph of the program

	// Placed is the program with the copies between memories as tasks, where all graphs
	// follow plans; nil: the policy decides while they run.
	Placed *place.Program
}

// Decided is one graph of a decision.
type Decided struct {
	// Problem is one step of the graph. With a plan on one memory, or a policy, it has the
	// orders that sharing of bytes relies on. Those of a plan for several memories are of the
	// placed graph.
	Problem Problem
	Timed   *Costs       // of steps whose tasks are timed
	Plan    *Plan        // as it was given or made, see [Decision.PlanOf]; nil: the policy decides
	Placed  *place.Graph // of the plan

	onDemand []*layout.Layout // by memory, where the policy decides
}

// passes make a decision, each from what those before it have left.
var passes = []struct {
	name string // what it does, for errors
	run  func(*Decision, *Choice) error
}{
	{"check", checkProblems},
	{"fix the variants, clocks and copies of plans of", fixPlans},
	{"plan", planGraphs},
	{"place", placePlans},
	{"lay out", layOutDemand},
}

// Decide makes the decisions of a choice.
func (c *Priced) Decide(choice Choice) (*Decision, error) {
	choice.Plans = append(slices.Clone(choice.Plans), make([]*Plan, max(0, len(c.Program.Graphs)-len(choice.Plans)))...)
	if choice.Policy.Static == nil && choice.Policy.Dynamic == nil {
		if choice.Policy.Name != "" && slices.Contains(choice.Plans, nil) {
			return nil, fmt.Errorf("policy %s needs a plan", choice.Policy.Name)
		}
		choice.Policy = planner
	}
	if choice.Policy.Static == nil && slices.ContainsFunc(choice.Plans, func(p *Plan) bool { return p != nil }) {
		choice.Policy = planner
	}
	d := &Decision{Priced: c, Policy: choice.Policy}
	for _, pass := range passes {
		if err := pass.run(d, &choice); err != nil {
			return nil, fmt.Errorf("%s program %q on %q: %w", pass.name, c.Program.Name, c.Platform.Name, err)
		}
	}
	return d, nil
}

// planner plans what nobody else does.
var planner = PolicyInfo{Name: "heft", Static: HEFT}

// forGraphs calls do for every graph, whose name it adds to errors.
func (d *Decision) forGraphs(do func(i int, g *dag.Graph) error) error {
	for i, g := range d.Priced.Program.Graphs {
		if err := do(i, g); err != nil {
			return fmt.Errorf("graph %q: %w", g.Name, err)
		}
	}
	return nil
}

// checkProblems refuses graphs that nothing can run, and plans for other graphs.
func checkProblems(d *Decision, choice *Choice) error {
	d.Graphs = make([]Decided, len(d.Priced.graphs))
	return d.forGraphs(func(i int, g *dag.Graph) error {
		if plan := choice.Plans[i]; plan != nil && plan.GraphHash != "" && plan.GraphHash != g.Hash() {
			return fmt.Errorf("the plan is for a graph with hash %.12s…, this one has %.12s…", plan.GraphHash, g.Hash())
		}
		if plan := choice.Plans[i]; plan != nil {
			if err := plan.checkStates(g, d.Priced.Platform); err != nil {
				return err
			}
		}
		return d.Priced.graphs[i].checked()
	})
}

// fixPlans prices the graphs anew whose plans fix variants or clocks, and takes their copies of buffers.
func fixPlans(d *Decision, choice *Choice) (err error) {
	if d.Priced, err = d.Priced.fixing(choice.Plans); err != nil {
		return err
	}
	for i := range d.Graphs {
		problem := d.Priced.Problem(i, 1)
		if plan := choice.Plans[i]; plan != nil {
			problem.States = plan.States
		}
		problem.Seed, problem.eligible = choice.Seed, d.Priced.graphs[i].eligible
		d.Graphs[i].Problem, d.Graphs[i].Timed = *problem, d.Priced.Timed(i)
	}
	return nil
}

// planGraphs takes the plans that are given and makes the others, where the policy plans. It
// checks both, since a policy may be somebody else's.
func planGraphs(d *Decision, choice *Choice) error {
	made := make([]*Plan, len(d.Graphs)) // what policies say of copies of buffers
	err := d.forGraphs(func(i int, _ *dag.Graph) (err error) {
		decided := &d.Graphs[i]
		if decided.Plan = choice.Plans[i]; decided.Plan == nil && choice.Policy.Static != nil {
			if decided.Plan, err = choice.Policy.Static(&decided.Problem); err != nil {
				return fmt.Errorf("policy %s: %w", choice.Policy.Name, err)
			}
			made[i] = &Plan{Written: place.Written{Copies: decided.Plan.Copies}}
		}
		if decided.Plan == nil {
			return nil
		}
		return decided.Plan.Check(&decided.Problem)
	})
	if err != nil {
		return err
	}
	if d.Priced, err = d.Priced.fixing(made); err != nil {
		return err
	}
	for i := range d.Graphs {
		with := d.Priced.Problem(i, 1)
		d.Graphs[i].Problem.Graph, d.Graphs[i].Problem.Copies = with.Graph, with.Copies
	}
	return nil
}

// placePlans makes the copies of plans between memories tasks, and lays out every memory.
func placePlans(d *Decision, _ *Choice) (err error) {
	inputs := make([]place.Input, len(d.Graphs))
	for i := range d.Graphs {
		plan := d.Graphs[i].Plan
		if plan == nil {
			return nil // the policy decides while they run
		}
		inputs[i] = place.Input{Order: plan.Order, Occupies: d.Graphs[i].Problem.occupies, ScratchBytes: d.Priced.graphs[i].scratchBytes, Written: plan.Written}
	}
	if d.Placed, err = place.Compile(d.Priced.Program, d.Priced.Platform, inputs); err != nil {
		return err
	}
	for i := range d.Graphs {
		decided, pg := &d.Graphs[i], d.Placed.Graphs[i]
		decided.Placed = pg
		if pg.Moves() == nil {
			decided.Problem.Reuse, decided.Problem.ReuseNext = pg.Reuse, pg.MemoryReuseNext
		}
	}
	return nil
}

// layOutDemand places all buffers in every memory that may want them, for a policy that
// decides at run time what is there.
func layOutDemand(d *Decision, _ *Choice) error {
	if d.Placed != nil {
		return nil
	}
	host := d.Priced.Platform.HostMemory()
	atHost := !slices.ContainsFunc(d.Priced.Platform.Devices, func(device platform.Device) bool { return device.Memory != host })
	for _, g := range d.Priced.Program.Graphs {
		for b, n := range g.AllCopies() {
			if n > 1 && !atHost {
				return fmt.Errorf("graph %q: buffer %q has %d copies, and policy %s decides while it runs and knows one version of a buffer in several memories; take heft or a plan, or leave copies out",
					g.Name, g.Buffers[b].Name, n, d.Policy.Name)
			}
		}
	}
	home, err := d.Priced.HostLayouts()
	if err != nil {
		return err
	}
	canRun := func(graph int, t dag.TaskID, on platform.DeviceID) bool {
		_, ok := d.Priced.Costs(graph).Of(t, on)
		return ok
	}
	layouts, err := layout.OnDemand(d.Priced.Program, d.Priced.Platform, canRun, d.Priced.scratchBytes())
	if err != nil {
		return err
	}
	for i := range d.Graphs {
		decided := &d.Graphs[i]
		layouts[i][host] = home[i]
		decided.onDemand = layouts[i]
		decided.Problem.Reuse, decided.Problem.ReuseNext = home[i].Reuse, home[i].ReuseNext
		if d.Priced.Platform.Spread() {
			decided.Problem.Layouts = layouts[i]
		}
	}
	return nil
}

// Problem is a number of steps of a graph as it was decided. The tasks of timed steps cost
// what they do in a recorded run.
func (d *Decision) Problem(graph, steps int, timed bool) *Problem {
	p := d.Graphs[graph].Problem
	p.Steps = steps
	if timed {
		p.Costs = d.Graphs[graph].Timed
	}
	return &p
}

// ClocksUsed lists the clocks, ascending, at which the tasks of each device run: those of plans, and the
// one in force where nothing else is said.
func (d *Decision) ClocksUsed() [][]platform.ClockID {
	p := d.Priced.Platform
	used := make([][]platform.ClockID, len(p.Devices))
	for i := range d.Graphs {
		decided := &d.Graphs[i]
		if decided.Plan == nil || decided.Problem.Clocks == nil {
			for id := range p.Devices {
				used[id] = append(used[id], p.Devices[id].AtClock)
			}
			continue
		}
		for w, list := range decided.Plan.Order {
			id := p.Workers[w].Device
			for _, t := range list {
				clock, _ := decided.Problem.StatesOf(t, id)
				used[id] = append(used[id], clock)
			}
		}
	}
	for id := range used {
		slices.Sort(used[id])
		used[id] = slices.Compact(used[id])
	}
	return used
}

// PolicyName is what a schedule of a graph says decided it.
func (d *Decision) PolicyName(graph int) string {
	if plan := d.Graphs[graph].Plan; plan != nil {
		return cmp.Or(plan.Policy, "replay")
	}
	return d.Policy.Name
}

// Layouts are those of a graph by memory: of the buffers of the placed graph where there is a
// plan, else of the graph's own.
func (d *Decision) Layouts(graph int) []*layout.Layout {
	if d.Placed != nil {
		return d.Placed.Layouts()[graph]
	}
	return d.Graphs[graph].onDemand
}

// PlanOf is the plan of a graph with all that was decided for it ([place.Program.Written]), or what its
// policy did in a run, written down. In a single memory that has the places of the buffers too.
func (d *Decision) PlanOf(graph int, s *Schedule) *Plan {
	decided, p := &d.Graphs[graph], d.Priced.Platform
	if d.Placed != nil {
		plan := *decided.Plan
		plan.Written = d.Placed.Written(graph)
		return &plan
	}
	g := decided.Problem.Graph
	plan := PlanFrom(s, s.Policy, g)
	if !p.Spread() {
		plan.Written = place.OnHost(g, p, decided.onDemand)
	}
	return plan
}

// ReservedBytes is what the layouts reserve in each memory: the graphs share the arenas, so
// each is as large as the graph that needs most.
func (d *Decision) ReservedBytes() []int64 {
	sums := make([]int64, len(d.Priced.Platform.Memories))
	for m := range sums {
		var arenas [layout.NumArenas]int64
		for i := range d.Graphs {
			if l := d.Layouts(i)[m]; l != nil {
				for a, bytes := range l.ArenaBytes {
					arenas[a] = max(arenas[a], layout.Align(bytes))
				}
			}
		}
		for _, bytes := range arenas {
			sums[m] += bytes
		}
	}
	return sums
}
