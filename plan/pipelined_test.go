package plan

import (
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/platforms/testmachine"
	"dahl/schedule"
	"dahl/schedule/audit"
)

// evaluated is a plan of a graph on so many cores.
func evaluated(t *testing.T, graph string, cores int, of *schedule.Plan) *Evaluated {
	t.Helper()
	p := testmachine.Node(t, testmachine.CPU(cores, 0, 1))
	p.HostPower = testmachine.Watts(1)
	priced := must.Get(schedule.Price(parsed(t, graph), p, schedule.Unbound))(t)
	return must.Get(Evaluate(priced, schedule.Choice{Plans: []*schedule.Plan{of}}))(t)
}

// TestWorkAhead: core 0 has tasks of 10 and 30 ms, so that no step of a long run takes less than 40. The second one lags three
// steps behind the first, which runs alone in three rounds, of 10 ms each; between them core 1 takes 10 ms. So the first step ends after
// 40+30 = 70 ms, the next 57 follow 40 ms apart, and the last three 30 ms apart, with nothing ahead: 61 steps take
// 70 + 57·40 + 3·30 = 2440 ms = 61·40. From the first to the last they are 39.5 ms apart, those after the 31st 39.
// Core 1 begins after 10 ms, and its last task ends with the tenth millisecond after that of core 0 ended, 30+3·30 ms before the end.
func TestWorkAhead(t *testing.T) {
	const ms, steps = time.Millisecond, 61
	e := evaluated(t, `"buffers": [{"name": "a", "bytes": 64, "copies": 4}, {"name": "b", "bytes": 64, "copies": 4}], "tasks": [
		{"name": "forward", "ns": {"cpu": 10000000}, "writes": ["a"]},
		{"name": "middle", "ns": {"cpu": 10000000}, "reads": ["a"], "writes": ["b"]},
		{"name": "backward", "ns": {"cpu": 30000000}, "reads": ["a", "b"]}]`, 2,
		&schedule.Plan{Order: [][]dag.TaskID{{0, 2}, {1}}, Lags: []int32{0, 0, 3}})
	ran := must.Get(e.Simulate(t.Context(), 0, steps, false))(t)
	s := ran.Schedule
	must.Do(t, audit.Check(s, e.Decision.Problem(0, steps, false)))
	if s.FirstStep != 70*ms || s.Makespan != 2440*ms || s.Period != 40*ms {
		t.Errorf("the first step ends after %v, the last after %v, with a period of %v; want 70, 2440 and 40 ms", s.FirstStep, s.Makespan, s.Period)
	}
	if of := PipelinedOf(s, e.Plan()); *of != (Pipelined{Lag: 3, Fill: 0.01, Steady: 0.04, Drain: 0.11}) {
		t.Errorf("%+v", of)
	}
	total := must.Get(Predict(t.Context(), e.Decision, []Piece{{Segment: dag.Segment{Steps: steps}, Recorded: true, First: true}}, false))(t)
	if total.Run != 2440*ms || total.Counted.PerStep() != 40*ms {
		t.Errorf("a run of %v has steps of %v", total.Run, total.Counted.PerStep())
	}
	if step, err := e.StepTime(t.Context(), true, 10); err != nil || step != 40*ms {
		t.Errorf("a steady step takes %v (%v)", step, err)
	}
	// In four steps no round has all tasks but the last one: 70+3·30 ms are 40 a step.
	if s = must.Get(e.Simulate(t.Context(), 0, 4, false))(t).Schedule; s.Period != 40*ms {
		t.Errorf("four steps have a period of %v", s.Period)
	}
}

// TestCatchingUp: core 0 has a task of 10 ms, three others have one of 9 ms each, in a chain. The chain ends 27 + 9(n-1) ms after the
// beginning of n steps, later than core 0 where n is below 18: runs of 3 and 6 steps are 27 ms apart. In a long run a step takes 10 ms, and, where
// idle cores draw nothing, a busy one 1 W, and the host 1 W, (10+27)·1 + 10·1 mJ.
func TestCatchingUp(t *testing.T) {
	const ms = time.Millisecond
	e := evaluated(t, `"buffers": [{"name": "a", "bytes": 64, "copies": 2}, {"name": "b", "bytes": 64, "copies": 2}], "tasks": [
		{"name": "alone", "ns": {"cpu": 10000000}},
		{"name": "first", "ns": {"cpu": 9000000}, "writes": ["a"]},
		{"name": "second", "ns": {"cpu": 9000000}, "reads": ["a"], "writes": ["b"]},
		{"name": "third", "ns": {"cpu": 9000000}, "reads": ["b"]}]`, 4,
		&schedule.Plan{Order: [][]dag.TaskID{{0}, {1}, {2}, {3}}})
	for n, makespan := range map[int]time.Duration{3: 45 * ms, 6: 72 * ms} {
		s := must.Get(e.Simulate(t.Context(), 0, n, false))(t).Schedule
		must.Do(t, audit.Check(s, e.Decision.Problem(0, n, false)))
		if s.Makespan != makespan || s.Period != 10*ms {
			t.Errorf("%d steps take %v, with a period of %v", n, s.Makespan, s.Period)
		}
	}
	step, err := e.Step(t.Context(), true, 3)
	if err != nil || step.Time != 10*ms || step.Joules < 0.047-1e-9 || step.Joules > 0.047+1e-9 {
		t.Errorf("a steady step takes %v and %g J (%v)", step.Time, step.Joules, err)
	}
	if bound := e.Decision.Priced.LowerBound(0, 1000) / 1000; step.Time < bound {
		t.Errorf("a steady step takes %v, below the bound %v", step.Time, bound)
	}
}
