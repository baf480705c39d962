package conformance

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"dahl/dag"
	"dahl/energy"
	"dahl/must"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/audit"
	"dahl/schedule/place"
)

// stateful is a node with an emulated GPU of two clocks that sleeps when a plan says so, or by
// itself.
func stateful(t testing.TB, after time.Duration) *platform.Platform {
	t.Helper()
	p := emulatedNode(t, 1)
	for i := range p.Devices {
		if d := &p.Devices[i]; d.IsEmulated() {
			d.IdleWatts, d.Busy, d.PowerSource = 2, platform.BusyPower{UnitWatts: 10}, platform.Guess
			d.Clocks = []platform.Clock{{Name: "own", Scale: 1, Idle: 2, Busy: d.Busy}, {Name: "slow", Scale: 0.5, Idle: 1, Busy: platform.BusyPower{UnitWatts: 4}}}
			d.Switch = platform.Transition{Takes: 200 * time.Microsecond, Joules: 1e-4}
			d.Sleeps = []platform.SleepState{{Name: "deep", Watts: 0.1, After: after,
				Enter: platform.Transition{Takes: 50 * time.Microsecond}, Leave: platform.Transition{Takes: 100 * time.Microsecond, Joules: 1e-4}}}
		}
	}
	must.Do(t, p.Complete())
	return p
}

// changesOf are the kinds and states of changes in a schedule, by device, in order.
func changesOf(s *schedule.Schedule, p *platform.Platform) map[string][]string {
	all := map[string][]string{}
	for i := range s.Changes {
		c := &s.Changes[i]
		all[c.Of(p)] = append(all[c.Of(p)], c.Kind.String()+" "+c.StateName(p))
	}
	return all
}

// copiesOf is up to three copies of the buffers of a graph that a step writes before it reads them, where
// the plan that was decided needs them.
func copiesOf(d *schedule.Decision, graph int) (counts []place.PlannedVersions) {
	g := d.Priced.Program.Graphs[graph]
	for i, at := range d.Placed.Written(graph).Places {
		name, _, _ := strings.Cut(at.Buffer, "@")
		if b, _ := g.BufferByName(name); g.WrittenStorages()[b] && !g.Carried(b) && g.Buffers[b].Home == "" {
			counts = append(counts, place.PlannedVersions{Memory: at.Memory, Buffer: name, Versions: 1 + i%3})
		}
	}
	return counts
}

// A plan with clocks, sleep and copies of buffers is executed as it says: the changes on the emulated GPU are those of
// a simulation of the same plan, in the same order, none overlaps a task (Schedule.Check), each
// takes its time, transfers are those of the plan, and the weights are those of a run without any of it.
func TestStatesAreExecuted(t *testing.T) {
	n := newNetwork(t, "mlp", dag.Float32, 1)
	plain := n.execute(t, how{platform: emulatedNode(t, 1)})
	p := stateful(t, 0)
	d := decided(t, n.prog, how{platform: p})
	r := rand.New(rand.NewPCG(3, 5))
	plans := make([]*schedule.Plan, len(n.prog.Graphs))
	for i, g := range n.prog.Graphs {
		plan := &schedule.Plan{Order: d.Graphs[i].Plan.Order}
		plan.Versions = copiesOf(d, i)
		for w, list := range plan.Order {
			for _, task := range list {
				if d := &p.Devices[p.Workers[w].Device]; d.IsEmulated() {
					if r.IntN(3) == 0 {
						plan.SetClock(g, task, 1)
					}
					if r.IntN(3) == 0 {
						plan.SetSleep(g, task, 1)
					}
				}
			}
		}
		plans[i] = plan
	}
	tr := n.execute(t, how{platform: p, plans: plans})
	if tr.hash() != plain.hash() {
		t.Error("the weights depend on clocks and sleep")
	}
	switches, asleepJ, switchingJ := 0, 0.0, 0.0
	for _, run := range tr.runs {
		want := changesOf(simulated(t, tr.decision, run.graph, run.problem.Steps), p)
		for device, list := range changesOf(run.schedule, p) {
			if !slices.Equal(list, want[device]) {
				t.Errorf("graph %d, %s: executed %v\nsimulated %v", run.graph, device, list, want[device])
			}
			switches += len(list)
		}
		for i := range run.schedule.Changes {
			if c := &run.schedule.Changes[i]; c.End-c.Start < c.Transition(p).Takes-time.Microsecond {
				t.Errorf("graph %d: %v %s took %v", run.graph, c.Kind, c.StateName(p), c.End-c.Start)
			}
		}
		err := audit.FollowsTransfers(run.schedule, tr.decision.Placed, run.graph)
		if err == nil {
			err = audit.Check(run.schedule, run.problem)
		}
		if err != nil {
			t.Fatalf("graph %d: %v", run.graph, err)
		}
		report, err := energy.FromSchedule(run.schedule, run.problem)
		if err != nil {
			t.Fatalf("graph %d: %v", run.graph, err)
		}
		asleepJ, switchingJ = asleepJ+report.Causes.Sleep, switchingJ+report.Causes.Switching
	}
	if switches < 20 || asleepJ == 0 || switchingJ == 0 {
		t.Errorf("%d changes, %g J asleep and %g J switching; the test shows little", switches, asleepJ, switchingJ)
	}
}

// Under a policy a device falls asleep by itself and is woken for its tasks.
func TestSleepUnderAPolicy(t *testing.T) {
	n := newNetwork(t, "mlp", dag.Float32, 1)
	p := stateful(t, 20*time.Microsecond)
	tr := n.execute(t, how{platform: p, policy: "eager"})
	naps := 0
	for _, run := range tr.runs {
		naps += len(run.schedule.Changes)
	}
	if naps == 0 {
		t.Error("the device never slept")
	}
}
