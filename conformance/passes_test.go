package conformance

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/execute/hardware"
	"dahl/must"
	"dahl/nn"
	"dahl/nn/models"
	"dahl/platforms"
	"dahl/schedule"
	"dahl/schedule/policy"
	"dahl/schedule/ready"
)

// invariants say what holds after each pass, of the graph at a position. They need no knowledge of how a pass
// came to its result.
var invariants = map[string]func(d *schedule.Decision, i int) error{
	"check":  nothingDecided,
	"plan":   everyTaskOnce,
	"fix":    plannedTasksHaveCosts,
	"verify": orderIsPossible,
	"place":  placedTasksOnce,
	"layout": everythingFits,
}

func nothingDecided(d *schedule.Decision, i int) error {
	if len(d.Graphs) != len(d.Priced.Program.Graphs) || d.Graphs[i].Plan != nil || d.Placed != nil {
		return fmt.Errorf("%d graphs, plan %v, placed %v", len(d.Graphs), d.Graphs[i].Plan, d.Placed)
	}
	return nil
}

// later reports whether the policy decides while the graph runs.
func later(d *schedule.Decision) bool { return d.Priced.DecidesLater(d.Policy) }

func everyTaskOnce(d *schedule.Decision, i int) error {
	plan := d.Graphs[i].Plan
	if later(d) {
		if plan != nil {
			return fmt.Errorf("a plan of a policy that decides while the graph runs")
		}
		return nil
	}
	tasks := slices.Sorted(slices.Values(slices.Concat(plan.Order...)))
	for t, listed := range tasks {
		if dag.TaskID(t) != listed {
			return fmt.Errorf("task %d is not listed once", t)
		}
	}
	if n := d.Priced.Program.Graphs[i].NumTasks(); len(tasks) != n {
		return fmt.Errorf("%d of %d tasks", len(tasks), n)
	}
	return nil
}

func plannedTasksHaveCosts(d *schedule.Decision, i int) error {
	p := &d.Graphs[i].Problem
	if p.Graph != d.Priced.Program.Graphs[i] || len(d.Graphs[i].Timed.Class) != len(p.Graph.Tasks) {
		return fmt.Errorf("the problem is of another graph, or its costs are")
	}
	if d.Graphs[i].Plan == nil {
		return nil
	}
	for w, list := range d.Graphs[i].Plan.Order {
		for _, t := range list {
			if cost, ok := p.Costs.Of(t, p.Platform.Workers[w].Device); !ok || cost.Duration < 0 {
				return fmt.Errorf("task %q costs nothing on worker %d", p.Graph.Tasks[t].Name, w)
			}
		}
	}
	return nil
}

func orderIsPossible(d *schedule.Decision, i int) error {
	if d.Graphs[i].Plan == nil {
		return nil
	}
	if _, stuck := ready.Sort(d.Graphs[i].Problem.Graph.Links, nil, d.Graphs[i].Plan.Order); stuck >= 0 {
		return fmt.Errorf("task %d could never start", stuck)
	}
	return nil
}

// placedTasksOnce: each lane of a worker has the tasks of the plan in their order, and each transfer is on one lane or on none.
func placedTasksOnce(d *schedule.Decision, i int) error {
	if later(d) != (d.Placed == nil) {
		return fmt.Errorf("placed %v of a policy that decides later: %v", d.Placed != nil, later(d))
	}
	if d.Placed == nil {
		return nil
	}
	pg, seen := d.Placed.Graphs[i], map[dag.TaskID]bool{}
	for lane, list := range pg.Order {
		var tasks []dag.TaskID
		for _, t := range list {
			if seen[t] {
				return fmt.Errorf("%q is listed twice", pg.Name(t))
			}
			seen[t] = true
			if transfer := pg.Move(t) != nil; transfer != (d.Placed.Lanes[lane].Worker < 0) {
				return fmt.Errorf("%q is on lane %q", pg.Name(t), d.Placed.Lanes[lane].Name)
			} else if !transfer {
				tasks = append(tasks, pg.TaskOf(t))
			}
		}
		if order := d.Graphs[i].Plan.Order; lane < len(order) && !slices.Equal(tasks, order[lane]) {
			return fmt.Errorf("lane %q has another order than the plan", d.Placed.Lanes[lane].Name)
		}
	}
	if _, stuck := ready.Sort(pg.Links, pg.Reuse, pg.Order); stuck >= 0 || len(seen)+len(pg.Unlaned()) != pg.NumTasks() {
		return fmt.Errorf("%d tasks on lanes and %d on none, of %d; stuck at %d", len(seen), len(pg.Unlaned()), pg.NumTasks(), stuck)
	}
	return nil
}

// everythingFits: every memory has room for what the layouts reserve, and their places do not overlap where both are live.
func everythingFits(d *schedule.Decision, i int) error {
	for m, bytes := range d.ReservedBytes() {
		if limit := d.Priced.Platform.Memories[m].CapacityBytes; limit > 0 && bytes > limit {
			return fmt.Errorf("memory %d: %d bytes of %d", m, bytes, limit)
		}
	}
	g, orders := d.Priced.Program.Graphs[i], [][]dag.Edge(nil)
	if d.Placed != nil {
		placed, err := d.Placed.Graphs[i].Graph()
		if err != nil {
			return err
		}
		g, orders = placed, d.Placed.Graphs[i].Orders()
	}
	for _, l := range d.Layouts(i) {
		all := *l
		if orders != nil {
			all.Reuse, all.ReuseNext = d.Placed.Graphs[i].Reuse, orders[1]
		}
		if err := all.Check(g); err != nil {
			return err
		}
	}
	return nil
}

// TestPasses checks the decision after every pass, for networks of three kinds on machines with one and several memories, by
// policies that plan and one that decides later. What is dumped after a pass is of that pass alone: the costs come with fix,
// places with place or layout.
func TestPasses(t *testing.T) {
	if passes := schedule.Passes(); len(passes) != len(invariants) {
		t.Fatalf("passes %q, and invariants of %d", passes, len(invariants))
	}
	for _, network := range []string{"mlp", "lenet5", "digits-cnn"} {
		model, err := models.ByName(network)
		if err != nil {
			t.Fatal(err)
		}
		prog := must.Get(nn.NewProgram(model, nn.ProgramOptions{Batch: 8, TrainSamples: 20, TestSamples: 8, Type: dag.Float32, Lowering: nn.DefaultLowering(model, 8, 1<<18, dag.Float32)}))(t)
		for _, machine := range []string{"laptop", "server", "emulated"} {
			priced := must.Get(schedule.Price(prog, must.Get(platforms.Load(machine))(t), hardware.Target{}))(t)
			for _, by := range []schedule.Policy{policy.HEFT, policy.DataParallel, policy.Eager} {
				var ran []string
				after := func(pass string, d *schedule.Decision) {
					ran = append(ran, pass)
					for i, g := range d.Priced.Program.Graphs {
						if err := invariants[pass](d, i); err != nil {
							t.Errorf("%s on %s by %s: after %s, graph %q: %v", network, machine, by.Doc().Name, pass, g.Name, err)
						}
					}
				}
				d := must.Get(priced.Decide(schedule.Choice{Policy: by, After: after}))(t)
				if !slices.Equal(ran, schedule.Passes()) {
					t.Errorf("passes %q ran, want %q", ran, schedule.Passes())
				}
				for at, pass := range schedule.Passes() {
					var out bytes.Buffer
					must.Do(t, d.Dump(&out, pass))
					for word, from := range map[string]int{"plan by": 1, "\ncosts\n": 2, "\nmemories\n": 4} {
						if later(d) && from != 2 {
							from = map[int]int{1: 6, 4: 5}[from] // there is no plan, and the last pass lays out
						}
						if strings.Contains(out.String(), word) != (at >= from) {
							t.Errorf("%s on %s by %s: the dump after %s has %q: %v", network, machine, by.Doc().Name, pass, word, at < from)
						}
					}
				}
			}
		}
	}
}
