package conformance

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/audit"
	"dahl/simulate"
)

// feedBack simulates a plan with the durations of a measured schedule, as dahl
// compare does to tell kernel errors from scheduling errors.
func feedBack(t *testing.T, d *schedule.Decision, graph int, measured *schedule.Schedule) *schedule.Schedule {
	t.Helper()
	tasks := d.Priced.Program.Graphs[graph].NumTasks()
	durations := make([]time.Duration, tasks*measured.Steps)
	for _, s := range measured.Spans {
		durations[int(s.Step)*tasks+int(s.Task)] = s.End - s.Start
	}
	fed, err := simulate.Run(context.Background(), d, graph, measured.Steps, simulate.Options{Durations: func(i dag.Instance, _ platform.WorkerID) (time.Duration, bool) {
		return durations[int(i.Step)*tasks+int(i.Task)], true
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := audit.Check(fed, d.Problem(graph, measured.Steps, false)); err != nil {
		t.Error(err)
	}
	return fed
}

// perturbed is the problem with other durations: every task takes from a quarter to
// four times what the model says, each its own.
func perturbed(p *schedule.Problem, seed uint64) *schedule.Problem {
	rng := rand.New(rand.NewPCG(seed, 7))
	costs := &schedule.Costs{Class: make([]int32, p.Graph.NumTasks())}
	for i := range costs.Class {
		costs.Class[i] = int32(i)
		row := make([]schedule.Cost, len(p.Platform.Devices))
		for d := range row {
			c, _ := p.Costs.Of(dag.TaskID(i), platform.DeviceID(d))
			c.Duration = c.Duration/4 + time.Duration(rng.Int64N(1+int64(c.Duration)*15/4))
			row[d] = c
		}
		costs.ByClass = append(costs.ByClass, row)
	}
	q := *p
	q.Costs = costs
	return &q
}

// TestFeedbackReproducesAnIdealMachine "measures" on a machine whose kernels take
// other times than the model says and that is otherwise ideal: nullRun with perturbed
// costs. The simulator, given those times, gives the same schedule, so that all of
// the error is the kernel models' and none is the scheduling's.
func TestFeedbackReproducesAnIdealMachine(t *testing.T) {
	for _, cores := range []int{2, 5} {
		p := machine(t, cores)
		p.Devices[0].Dispatch, p.Devices[0].Handoff = 300, 100
		p.Devices[0].WakeAfter, p.Devices[0].Wake = 50_000, 20_000
		for _, model := range []string{"digits-cnn", "lenet5", "mlp"} {
			d := decided(t, program(trainingStep(t, model, 37, p)), how{platform: p, policy: "heft"})
			predicted, problem := simulated(t, d, 0, 7), d.Problem(0, 7, false)
			for seed := range uint64(5) {
				measured, err := nullRun(perturbed(problem, seed), replay(d.Graphs[0].Plan))
				if err != nil {
					t.Fatal(err)
				}
				if measured.Makespan == predicted.Makespan {
					t.Errorf("%s: other durations, and the same makespan", model)
				}
				compareSchedules(t, problem, feedBack(t, d, 0, measured), measured)
			}
		}
	}
}

// TestFeedbackIsNeverSlower executes plans for real. The simulated machine has no
// dispatch cost here, so each of its tasks starts as soon as the tasks that it follows,
// by the graph, the reuse of memory and the worker's list, have ended. By induction
// along those orders no task ends later than the measured one did, which had to wait
// for the same tasks; what the measured run takes more is the executor's own.
func TestFeedbackIsNeverSlower(t *testing.T) {
	for _, model := range []string{"digits-cnn", "lenet5"} {
		n := newNetwork(t, model, dag.Float32, 1)
		tr := n.execute(t, how{platform: machine(t, 2), policy: "heft"})
		for _, r := range tr.runs {
			fed := feedBack(t, tr.decision, r.graph, r.schedule)
			ends := map[dag.Instance]time.Duration{}
			for _, s := range r.schedule.Spans {
				ends[dag.Instance{Task: s.Task, Step: s.Step}] = s.End
			}
			for _, s := range fed.Spans {
				if measured := ends[dag.Instance{Task: s.Task, Step: s.Step}]; s.End > measured {
					t.Errorf("%s of step %d ends at %v fed back, at %v measured", r.problem.Graph.Tasks[s.Task].Name, s.Step, s.End, measured)
				}
			}
		}
	}
}
