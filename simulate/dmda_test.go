package simulate

import (
	"testing"
	"time"

	"dahl/dag"
	"dahl/schedule"
)

// workerOf is where a task of step 0 ran.
func workerOf(p *schedule.Problem, s *schedule.Schedule, name string) string {
	for _, span := range s.Spans {
		if span.Step == 0 && p.Graph.Tasks[span.Task].Name == name {
			return p.Platform.Workers[span.Worker].Name
		}
	}
	return ""
}

// TestDMDAWaitsForTheEngine: the gpu has one engine in, and fetches x of 200 bytes for a,
// from 0 to 210. At 5, when p has ended on the cpu, c becomes ready and reads y of 40
// bytes, which come to the gpu behind x, from 210 to 260. There it would run until 270, and
// on the cpu from 5 on for 264, 265 or 266: ties go to the cpu.
func TestDMDAWaitsForTheEngine(t *testing.T) {
	for takes, want := range map[int64]string{264: "cpu", 265: "cpu", 266: "gpu"} {
		b := dag.NewBuilder("behind another copy")
		x := b.Buffer(dag.Buffer{Name: "x", Shape: []int{200}, Type: dag.Uint8, Role: dag.Input, Home: "host"})
		y := b.Buffer(dag.Buffer{Name: "y", Shape: []int{40}, Type: dag.Uint8, Role: dag.Input, Home: "host"})
		gpu := dag.Cost{Key: "gpu", Ns: 10}
		b.Task(dag.Task{Name: "a", Costs: []dag.Cost{gpu}, Accesses: []dag.Access{whole(x, dag.Read)}})
		first := b.Task(dag.Task{Name: "p", Costs: []dag.Cost{{Key: "cpu", Ns: 5}}})
		b.Task(dag.Task{Name: "c", Costs: []dag.Cost{gpu, {Key: "cpu", Ns: takes}}, Accesses: []dag.Access{whole(y, dag.Read)}, After: []dag.TaskID{first}})
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		pl := twoMemories(t)
		pl.Devices[1].CopyEnginesIn = 1
		p := problem(t, g, pl, 1)
		s := runChecked(t, p, dynamic(t, p, "dmda"))
		if got := workerOf(p, s, "c"); got != want {
			t.Errorf("%d ns on the cpu: on %s, want %s", takes, got, want)
		}
		if want == "gpu" && s.Makespan != 270 {
			t.Errorf("makespan %d, want 270", s.Makespan)
		}
	}
}

// chains are two chains of two tasks. Those of the first add to x of 40 bytes and are for
// the gpu, where they take 10 ns. Those of the second add to y of 60 bytes, in 10 ns on the
// gpu and longer on the cpu. In a gpu of 90 bytes x and y have no room together.
func chains(t *testing.T, cpuNs int64) *schedule.Problem {
	b := dag.NewBuilder("chains")
	x := b.Buffer(dag.Buffer{Name: "x", Shape: []int{40}, Type: dag.Uint8, Role: dag.Parameter, Home: "host"})
	y := b.Buffer(dag.Buffer{Name: "y", Shape: []int{60}, Type: dag.Uint8, Role: dag.Parameter, Home: "host"})
	gpu := dag.Cost{Key: "gpu", Ns: 10}
	for _, name := range []string{"a0", "a1"} {
		b.Task(dag.Task{Name: name, Costs: []dag.Cost{gpu, {Key: "cpu", Ns: 1000}}, Accesses: []dag.Access{whole(x, dag.ReadWrite)}})
	}
	for _, name := range []string{"b0", "b1"} {
		b.Task(dag.Task{Name: name, Costs: []dag.Cost{gpu, {Key: "cpu", Ns: cpuNs}}, Accesses: []dag.Access{whole(y, dag.ReadWrite)}})
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	pl := twoMemories(t)
	pl.Memories[1].CapacityBytes = 90
	return problem(t, g, pl, 1)
}

// TestDMDACountsWhatLeaves: at 0 a0 goes to the gpu, where x should be at 50, so that its
// worker is free at 60. There b0 does not fit beside it: as many bytes as y has would have
// to leave, and y to come, 70 ns each, so that b0 would run from 200 to 210. On the cpu it
// ends no later if it takes no longer. x is on the gpu from 50 on, a0 runs to 60, a1 to 70.
//
// When b0 has ended on the cpu, b1 follows. No other task names x any more, but it is only
// on the gpu, and has to be written back, in 50 ns, before y comes in 70: b1 would end on
// the gpu 130 ns later. So it does if the cpu takes 131.
func TestDMDACountsWhatLeaves(t *testing.T) {
	stays, moves1 := "x fetch 0-50", "x fetch 0-50, x evict 131-181, x leaves 181, y fetch 181-251"
	moves2 := "x fetch 0-50, x evict 210-260, x leaves 260, y fetch 260-330"
	for _, c := range []struct {
		cpuNs    int64
		b0, b1   string
		moves    string
		makespan time.Duration
	}{
		{100, "cpu", "cpu", stays, 200},
		{130, "cpu", "cpu", stays, 260},
		{131, "cpu", "gpu", moves1, 261},
		{210, "cpu", "gpu", moves2, 340},
		{211, "gpu", "", "", 0},
	} {
		p := chains(t, c.cpuNs)
		s := runChecked(t, p, dynamic(t, p, "dmda"))
		if got := workerOf(p, s, "b0"); got != c.b0 {
			t.Errorf("%d ns: b0 on %s, want %s", c.cpuNs, got, c.b0)
		}
		if c.b1 == "" {
			continue
		}
		if got := workerOf(p, s, "b1"); got != c.b1 || s.Makespan != c.makespan {
			t.Errorf("%d ns: b1 on %s, makespan %d; want %s, %d", c.cpuNs, got, s.Makespan, c.b1, c.makespan)
		}
		if got := moves(p, s); got != c.moves {
			t.Errorf("%d ns: moves %s, want %s", c.cpuNs, got, c.moves)
		}
	}
}

// TestEvictWhatNoTaskNames: dmda gives five tasks to a gpu of 130 bytes at once. x, y and z
// come for the first three, 10 ns of latency and 120 for their bytes. a runs from 130 on, b
// from 140, c from 150. Then d is taken and needs w, for which one of x and y has to leave.
// x was used before y, but e names it: y leaves. w comes until 200, d runs to 210, and e
// finds x there.
func TestEvictWhatNoTaskNames(t *testing.T) {
	pl := twoMemories(t)
	pl.Memories[1].CapacityBytes = 130
	p := problem(t, onGPU(t, "x", "y", "z", "w", "x"), pl, 1)
	s := runChecked(t, p, dynamic(t, p, "dmda"))
	want := "x fetch 0-130, y prefetch 0-130, z prefetch 0-130, y leaves 150, w fetch 150-200"
	if got := moves(p, s); got != want || s.Makespan != 220 {
		t.Errorf("moves %s, makespan %d; want %s, 220", got, s.Makespan, want)
	}
}
