package schedule

import (
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/platform"
)

// TestPace: dispatch 100 ns, a hand-off 10 more, a wake-up after 50 ns of waiting 1000
// more. The worker's last task ended at 500.
//
//	ready at 400 (or 500), told at 500: it did not wait        500 + 100
//	ready and told at 501: waited 1 ns                          501 + 100 + 10
//	ready and told at 549: waited 49 ns                         549 + 100 + 10
//	ready and told at 550: waited 50 ns and sleeps              550 + 100 + 1000
//	ready at 520, told at 600 (the policy took its time)        600 + 100 + 10
func TestPace(t *testing.T) {
	p := mixed(t)
	p.Devices[0].Dispatch, p.Devices[0].Handoff = 100, 10
	p.Devices[0].WakeAfter, p.Devices[0].Wake = 50, 1000
	prob := &Problem{Graph: oneTask(t, dag.Task{}), Platform: p, Costs: &Costs{Class: []int32{0}, ByClass: [][]Cost{{{}, {}, {}}}}}
	pace := NewPace(prob)
	begin := func(w platform.WorkerID, now, ready time.Duration) time.Duration {
		start, _ := pace.Begin(dag.Instance{}, w, now, ready)
		return start
	}
	for _, c := range []struct{ ready, now, want time.Duration }{
		{400, 500, 600}, {500, 500, 600}, {501, 501, 611}, {549, 549, 659}, {550, 550, 1650}, {520, 600, 710},
	} {
		pace.End(1, 500)
		if got := begin(1, c.now, c.ready); got != c.want {
			t.Errorf("ready at %d, told at %d: starts at %d, want %d", c.ready, c.now, got, c.want)
		}
	}
	if got := begin(0, 0, 0); got != 100 {
		t.Errorf("the first task of the run starts at %d, want 100", got)
	}
	p.Devices[0].WakeAfter, p.Devices[0].Wake = 0, 0
	if got := begin(1, 9999, 9999); got != 9999+110 {
		t.Errorf("a worker that never sleeps starts at %d, want 10109", got)
	}
}

// TestFirstStep: what was measured there if it is more, never less.
func TestFirstStep(t *testing.T) {
	for first, want := range map[time.Duration]time.Duration{0: 200, 150: 200, 350: 350} {
		p := &Problem{Graph: oneTask(t, dag.Task{}), Platform: mixed(t), Costs: &Costs{Class: []int32{0}, ByClass: [][]Cost{{{Duration: 200, First: first}, {}, {}}}}}
		pace := NewPace(p)
		if _, got := pace.Begin(dag.Instance{Step: 0}, 0, 0, 0); got != want {
			t.Errorf("first %d: %d, want %d", first, got, want)
		}
		if _, got := pace.Begin(dag.Instance{Step: 1}, 0, 0, 0); got != 200 {
			t.Errorf("second step: %d, want 200", got)
		}
	}
}

// TestContentionAndCaches: a call that reads x and writes y, 4000 bytes each, with a
// second level of 8000 bytes for each of two cores and a third of 16000 for both:
//
//	             warm  near  far
//	one busy       50   100  200
//	both busy      60   140  400
//
// Core 1 is busy until 1000.
//
//	core 0 at 0, both busy, never touched             400
//	again at 500: 8000 bytes since, all in L2          60
//	at 2000, alone                                     50
//	on core 1 at 3000, alone: all in L3               100
//	on core 0 at 4000: core 1 touched them last       100
//	z (4000 bytes) on core 0 at 5000: from memory     200
//	the call again at 6000: 4000 bytes since, in L2    50
//	the call with a cache of 3999 bytes at 7000, after
//	z at 6500 (8000 since, in L2): from L3            100
//
// The least is 50. Half in L2 and half in memory would be (50 + 200)/2 alone.
func TestContentionAndCaches(t *testing.T) {
	p := mixed(t)
	p.Devices[0].L2Bytes, p.Devices[0].L3Bytes = 8000, 16000
	b := dag.NewBuilder("cached")
	buffer := func(name string) dag.BufferID {
		return b.Buffer(dag.Buffer{Name: name, Shape: []int{1000}, Type: dag.Float32})
	}
	x, y, z := buffer("x"), buffer("y"), buffer("z")
	access := func(id dag.BufferID, m dag.Mode) dag.Access {
		return dag.Access{Region: dag.Region{Buffer: id}, Mode: m}
	}
	b.Task(dag.Task{Name: "f", Accesses: []dag.Access{access(y, dag.Write), access(x, dag.Read)}})
	b.Task(dag.Task{Name: "g", Accesses: []dag.Access{access(z, dag.Write)}})
	g := must.Get(b.Build())(t)
	cost := Cost{Duration: 140, Alone: platform.CacheTimes{Warm: 50, Near: 100, Far: 200}, Busy: platform.CacheTimes{Warm: 60, Near: 140, Far: 400}}
	prob := &Problem{Graph: g, Platform: p, Costs: &Costs{Class: []int32{0, 0}, ByClass: [][]Cost{{cost, cost, cost}}}, Steps: 1}
	pace := NewPace(prob)
	pace.End(1, 1000)
	for _, c := range []struct {
		task dag.TaskID
		w    platform.WorkerID
		now  time.Duration
		want time.Duration
	}{{0, 0, 0, 400}, {0, 0, 500, 60}, {0, 0, 2000, 50}, {0, 1, 3000, 100}, {0, 0, 4000, 100}, {1, 0, 5000, 200}, {0, 0, 6000, 50}, {1, 0, 6500, 50}} {
		start, takes := pace.Begin(dag.Instance{Task: c.task, Step: 1}, c.w, c.now, c.now)
		if takes != c.want {
			t.Errorf("task %d on core %d at %d takes %d, want %d", c.task, c.w, c.now, takes, c.want)
		}
		if c.w == 0 {
			pace.End(0, start+takes)
		}
	}
	p.Devices[0].L2Bytes = 3999
	if _, got := pace.Begin(dag.Instance{Step: 1}, 0, 7000, 7000); got != 100 {
		t.Errorf("with a smaller cache it takes %d, want 100", got)
	}
	if got := pace.takes(&cost, 0.5, 0, 0); got != 125 {
		t.Errorf("half in L2, half in memory: %d, want 125", got)
	}
	if got := cost.Least(); got != 50 {
		t.Errorf("the least is %d, want 50", got)
	}
}

// TestCachesKnowCopies: w is written alone on one core, 4000 bytes in each of two copies, and takes 200
// where it lies in no cache and 50 in a second level of 8000 bytes. Steps 0 and 1 touch a copy each
// for the first time; steps 2 and 3 find theirs, 4000 bytes later.
func TestCachesKnowCopies(t *testing.T) {
	p := mixed(t)
	p.Devices[0].L2Bytes = 8000
	b := dag.NewBuilder("copies")
	w := b.Buffer(dag.Buffer{Name: "w", Shape: []int{1000}, Type: dag.Float32, Versions: 2})
	b.Task(dag.Task{Name: "f", Accesses: []dag.Access{{Region: dag.Region{Buffer: w}, Mode: dag.Write}}})
	g := must.Get(b.Build())(t)
	all := platform.CacheTimes{Warm: 50, Near: 100, Far: 200}
	cost := Cost{Duration: 140, Alone: all, Busy: all}
	pace := NewPace(&Problem{Graph: g, Platform: p, Costs: &Costs{Class: []int32{0}, ByClass: [][]Cost{{cost, cost, cost}}}, Steps: 4})
	for step, want := range []time.Duration{200, 200, 50, 50} {
		if _, got := pace.Begin(dag.Instance{Step: int32(step)}, 0, 0, 0); got != want {
			t.Errorf("step %d takes %d, want %d", step, got, want)
		}
	}
}
