package schedule

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule/layout"
	"dahl/schedule/place"
)

// Choice is the basis of a [Decision].
type Choice struct {
	// Policy plans the graphs for which Plans has nothing. An online one ([Doc.Online]) decides while they run, where all
	// tasks run in the host's memory and Plans has nothing at all. Nil means that Plans has every graph.
	Policy Policy
	// Plans are by graph. A nil entry leaves the graph to the policy.
	Plans []*Plan
	// Seed is for policies that draw random numbers; they find it in [Problem.Seed].
	Seed uint64
	// After is called after each pass, with the decision so far. Nil means that nobody asks.
	After func(pass string, d *Decision)
}

// Decision is all decisions before a program runs: the worker of each task, or the policy that will decide it, the
// transfers between memories, and the place of every buffer. simulate.Run and execute.New take it, and decide nothing
// themselves. It is immutable.
type Decision struct {
	Priced *Priced // with the variants of the plans, and their versions of buffers
	Policy Policy
	Graphs []Decided // by graph of the program

	// Placed is the program with the transfers between memories as tasks. Nil means that the policy decides while the
	// graphs run.
	Placed *place.Program

	from   *Priced // before the plans fixed variants, clocks and versions
	choice Choice
}

// Decided is one graph of a decision.
type Decided struct {
	// Problem is one step of the graph. With a plan on one memory, or a policy, it has the orders that sharing of
	// bytes relies on. With a plan for several memories the placed graph has them.
	Problem Problem
	Timed   *Costs       // of steps whose tasks are timed
	Plan    *Plan        // as it was given or made, see [Decision.PlanOf]; nil if the policy decides while it runs
	Placed  *place.Graph // of the plan

	atHost []*layout.Layout // by memory, where the policy decides while the graph runs
}

// pass is one step of a decision. It decides one thing, from what the passes before it have left.
type pass struct {
	name string // as --dump has it
	does string // for errors
	run  func(*Decision, *Choice) error
}

// passes lists the passes in their order.
var passes = []pass{
	{"check", "check", checkProblems},
	{"plan", "plan", planGraphs},
	{"fix", "fix the variants, clocks and versions of plans of", fixPlans},
	{"verify", "check the plans of", checkPlans},
	{"place", "place", placePlans},
	{"layout", "lay out", layOutHost},
}

// Passes names the passes of [Priced.Decide] in their order.
func Passes() (names []string) {
	for _, p := range passes {
		names = append(names, p.name)
	}
	return names
}

// Decide makes the decisions of a choice, pass by pass.
func (c *Priced) Decide(choice Choice) (*Decision, error) {
	choice.Plans = append(slices.Clone(choice.Plans), make([]*Plan, max(0, len(c.Program.Graphs)-len(choice.Plans)))...)
	d := &Decision{Priced: c, Policy: choice.Policy, from: c, choice: choice}
	for _, pass := range passes {
		if err := pass.run(d, &choice); err != nil {
			return nil, fmt.Errorf("%s program %q on %q: %w", pass.does, c.Program.Name, c.Platform.Name, err)
		}
		if choice.After != nil {
			choice.After(pass.name, d)
		}
	}
	return d, nil
}

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

// planGraphs takes the plans that are given. The policy makes the others, unless it decides while the graphs run.
func planGraphs(d *Decision, choice *Choice) error {
	if d.Priced.DecidesLater(choice.Policy) && !slices.ContainsFunc(choice.Plans, func(p *Plan) bool { return p != nil }) {
		return nil
	}
	return d.forGraphs(func(i int, _ *dag.Graph) (err error) {
		if d.Graphs[i].Plan = choice.Plans[i]; d.Graphs[i].Plan == nil {
			if choice.Policy == nil {
				return errors.New("there is neither a plan nor a policy")
			}
			if d.Graphs[i].Plan, err = choice.Policy.Plan(d.problem(i, choice.Seed)); err != nil {
				return fmt.Errorf("policy %s: %w", choice.Policy.Doc().Name, err)
			}
		}
		return nil
	})
}

// problem is one step of a graph for a policy.
func (d *Decision) problem(graph int, seed uint64) *Problem {
	problem := d.Priced.Problem(graph, 1)
	problem.Seed, problem.fit = seed, d.Priced.graphs[graph].fit
	return problem
}

// DecidesLater reports whether a policy decides while the program runs, and makes no plan before. All tasks then run
// in the host's memory, the home of all buffers.
func (c *Priced) DecidesLater(policy Policy) bool {
	host := c.Platform.HostMemory()
	if policy == nil || !policy.Doc().Online || slices.ContainsFunc(c.Platform.Devices, func(device platform.Device) bool { return device.Memory != host }) {
		return false
	}
	return !slices.ContainsFunc(c.Program.Graphs, func(g *dag.Graph) bool {
		return slices.ContainsFunc(g.Buffers, func(b dag.Buffer) bool {
			home, err := place.Home(c.Platform, &b)
			return err != nil || home != host
		})
	})
}

// fixPlans prices the graphs anew whose plans fix variants or clocks, and takes their versions of buffers.
func fixPlans(d *Decision, choice *Choice) (err error) {
	plans := make([]*Plan, len(d.Graphs))
	for i := range d.Graphs {
		plans[i] = d.Graphs[i].Plan
	}
	if d.Priced, err = d.Priced.fixing(plans); err != nil {
		return err
	}
	for i, plan := range plans {
		problem := d.problem(i, choice.Seed)
		if plan != nil {
			problem.States, problem.Plan = plan.States, plan
		}
		d.Graphs[i].Problem, d.Graphs[i].Timed = *problem, d.Priced.Timed(i)
	}
	return nil
}

// checkPlans refuses plans that do not fit. They come from files and from policies, and may be somebody else's.
func checkPlans(d *Decision, _ *Choice) error {
	return d.forGraphs(func(i int, _ *dag.Graph) error {
		if d.Graphs[i].Plan == nil {
			return nil
		}
		return d.Graphs[i].Plan.Check(&d.Graphs[i].Problem)
	})
}

// placePlans makes the transfers of plans tasks, and lays out every memory.
func placePlans(d *Decision, _ *Choice) (err error) {
	inputs := make([]place.Input, len(d.Graphs))
	for i := range d.Graphs {
		plan := d.Graphs[i].Plan
		if plan == nil {
			return nil // the policy decides while they run
		}
		inputs[i] = place.Input{Order: plan.Order, Occupies: d.Graphs[i].Problem.occupies, ScratchBytes: d.Priced.graphs[i].scratchBytes, Lags: plan.Lags, Written: plan.Written}
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

// layOutHost places all buffers in the host's memory, for a policy that decides while the graphs run.
func layOutHost(d *Decision, _ *Choice) error {
	if d.Placed != nil {
		return nil
	}
	home, err := d.Priced.HostLayouts()
	if err != nil {
		return err
	}
	if _, err := place.Overflow(d.Priced.Program, &d.Priced.Platform.Memories[d.Priced.Platform.HostMemory()], home); err != nil {
		return err
	}
	for i := range d.Graphs {
		decided := &d.Graphs[i]
		decided.atHost = slices.Repeat([]*layout.Layout{{}}, len(d.Priced.Platform.Memories))
		decided.atHost[d.Priced.Platform.HostMemory()] = home[i]
		decided.Problem.Reuse, decided.Problem.ReuseNext = home[i].Reuse, home[i].ReuseNext
	}
	return nil
}

// Overlaps reports whether steps overlap by lags of the plan.
func (g *Decided) Overlaps() bool { return g.Plan != nil && g.Plan.Lags != nil }

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

// ClocksUsed lists the clocks, ascending, at which the tasks of each device run: the plans' clocks, and the one in
// force for all other tasks.
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

// PolicyName is the policy's name in a schedule of a graph.
func (d *Decision) PolicyName(graph int) string {
	if plan := d.Graphs[graph].Plan; plan != nil {
		return cmp.Or(plan.Policy, "replay")
	}
	return d.Policy.Doc().Name
}

// Layouts are the layouts of a graph by memory. With a plan they place the buffers of the placed graph, else the
// graph's own.
func (d *Decision) Layouts(graph int) []*layout.Layout {
	if d.Placed != nil {
		return d.Placed.Layouts()[graph]
	}
	return d.Graphs[graph].atHost
}

// PlanOf is the plan of a graph with all decisions for it ([place.Program.Written]). Without a plan it is the order
// of tasks in a run of the policy, with the places of the buffers.
func (d *Decision) PlanOf(graph int, s *Schedule) *Plan {
	decided := &d.Graphs[graph]
	if d.Placed != nil {
		plan := *decided.Plan
		plan.Written = d.Placed.Written(graph)
		return &plan
	}
	g := decided.Problem.Graph
	plan := PlanFrom(s, s.Policy, g)
	plan.Written = place.OnHost(g, d.Priced.Platform, decided.atHost)
	return plan
}

// ReservedBytes is the size of the layouts in each memory. The graphs share the arenas, so each is as large as the
// graph that needs most.
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
