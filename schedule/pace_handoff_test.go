package schedule

import (
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/platform"
)

// TestHandoffToCPU: on two cores a dispatch takes 100 ns, a hand-off 10 and a wake-up 5010;
// what a device did the host sees after 1000. Core 1 ran b, to 700; the device ran a, to 500.
// Core 0 is given, at the later of its own end and when it becomes ready,
//
//	c, which follows a, free at 0                       500 + 1000 + 100
//	c, free at 1200: the end of a is seen at 1500       1500 + 100
//	c, free at 1700                                     1700 + 100
//	c, free at 0 and asleep after 1400                  500 + 1000 + 5000 + 100
//	c, free at 150: seen 1350 later, not asleep         500 + 1000 + 100
//	d, which follows b, free at 0                       700 + 10 + 100
//	d, free at 800                                      800 + 100
//	e, which follows both, last of them b               700 + 10 + 100
//	f, which follows b by an order of the layout        700 + 10 + 100
//	g, which follows it from step to step               700 + 10 + 100
//	h, which follows it by what is carried              700 + 10 + 100
//	c, though a is on the device, ready at the start    100
func TestHandoffToCPU(t *testing.T) {
	b := dag.NewBuilder("both")
	w := b.Buffer(dag.Buffer{Name: "w", Shape: []int{3}, Type: dag.Uint8, Role: dag.Parameter})
	access := func(m dag.Mode) []dag.Access { return []dag.Access{{Region: dag.Region{Buffer: w}, Mode: m}} }
	h := b.Task(dag.Task{Name: "h", Accesses: access(dag.Read)})
	a := b.Task(dag.Task{Name: "a"})
	bb := b.Task(dag.Task{Name: "b", Accesses: access(dag.Write)})
	c := b.Task(dag.Task{Name: "c", After: []dag.TaskID{a}})
	d := b.Task(dag.Task{Name: "d", After: []dag.TaskID{bb}})
	e := b.Task(dag.Task{Name: "e", After: []dag.TaskID{a, bb}})
	f, g := b.Task(dag.Task{Name: "f"}), b.Task(dag.Task{Name: "g"})
	graph := must.Get(b.Build())(t)
	if len(graph.CarriedPreds(h)) == 0 {
		t.Fatal("nothing is carried to h")
	}
	for _, row := range []struct {
		task                       dag.TaskID
		free, ready, sleeps, toCPU time.Duration
		want                       time.Duration
	}{
		{c, 0, 500, 0, 1000, 1600}, {c, 1200, 500, 0, 1000, 1600}, {c, 1700, 500, 0, 1000, 1800},
		{c, 0, 500, 1400, 1000, 6600}, {c, 150, 500, 1400, 1000, 1600},
		{d, 0, 700, 0, 1000, 810}, {d, 800, 700, 0, 1000, 900}, {e, 0, 700, 0, 1000, 810},
		{f, 0, 700, 0, 1000, 810}, {g, 0, 700, 0, 1000, 810}, {h, 0, 700, 0, 1000, 810},
		{c, 0, 0, 0, 1000, 100},
		{c, 0, 500, 0, 0, 610}, // where nothing is known of the device, after a hand-off
	} {
		p := mixed(t)
		cpu := &p.Devices[0]
		cpu.Dispatch, cpu.Handoff, p.Devices[1].HandoffToCPU = 100, 10, row.toCPU
		if row.sleeps > 0 {
			cpu.WakeAfter, cpu.Wake = row.sleeps, 5010
		}
		costs := &Costs{Class: make([]int32, len(graph.Tasks)), ByClass: [][]Cost{{{}, {}, {}}}}
		pace := NewPace(&Problem{Graph: graph, Platform: p, Costs: costs, Reuse: []dag.Edge{{From: bb, To: f}}, ReuseNext: []dag.Edge{{From: bb, To: g}}})
		device, _ := p.WorkerByName("e0")
		for _, other := range []struct {
			task dag.TaskID
			w    platform.WorkerID
			end  time.Duration
		}{{a, device, 500}, {bb, 1, 700}} {
			pace.Begin(dag.Instance{Task: other.task}, other.w, 0, 0)
			pace.End(other.w, other.end)
		}
		pace.End(0, row.free)
		if got, _ := pace.Begin(dag.Instance{Task: row.task, Step: 1}, 0, max(row.free, row.ready), row.ready); got != row.want {
			t.Errorf("%s, free at %d: starts at %d, want %d (%+v)", graph.Tasks[row.task].Name, row.free, got, row.want, row)
		}
	}
}
