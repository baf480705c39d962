package explain

import (
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/platform"
	"dahl/schedule"
)

// gapProblem is a graph of four tasks on two CPU cores and a GPU:
//
//	a writes x            b writes y            (b on cpu.1, the others as placed)
//	c reads x and y, writes z                   (on the GPU, so x and y move)
//	d reads and writes the parameter w          (carried: waits for d of the step before)
func gapProblem(t *testing.T) *schedule.Problem {
	b := dag.NewBuilder("gaps")
	buffer := func(name string, role dag.Role, home string) dag.BufferID {
		return b.Buffer(dag.Buffer{Name: name, Shape: []int{5}, Type: dag.Float32, Role: role, Home: home})
	}
	x, y, z := buffer("x", dag.Activation, ""), buffer("y", dag.Activation, ""), buffer("z", dag.Activation, "")
	w := buffer("w", dag.Parameter, "ram")
	task := func(name string, modes map[dag.BufferID]dag.Mode, order ...dag.BufferID) {
		task := dag.Task{Name: name, Op: name}
		for _, buf := range order {
			task.Accesses = append(task.Accesses, dag.Access{Region: dag.Region{Buffer: buf}, Mode: modes[buf]})
		}
		b.Task(task)
	}
	task("a", map[dag.BufferID]dag.Mode{x: dag.Write}, x)
	task("b", map[dag.BufferID]dag.Mode{y: dag.Write}, y)
	task("c", map[dag.BufferID]dag.Mode{x: dag.Read, y: dag.Read, z: dag.Write}, x, y, z)
	task("d", map[dag.BufferID]dag.Mode{w: dag.ReadWrite}, w)
	g := must.Get(b.Build())(t)
	return &schedule.Problem{Graph: g, Steps: 2, Platform: &platform.Platform{
		Memories: []platform.Memory{{Name: "ram"}, {Name: "hbm"}},
		Devices:  []platform.Device{{Name: "cpu", Count: 2, Memory: 0}, {Name: "gpu", Count: 1, Memory: 1}},
		Workers:  []platform.Worker{{Name: "cpu.0", Device: 0}, {Name: "cpu.1", Device: 0, Index: 1}, {Name: "gpu", Device: 1}},
	}}
}

const (
	taskA, taskB, taskC, taskD dag.TaskID        = 0, 1, 2, 3
	cpu0, cpu1, gpu            platform.WorkerID = 0, 1, 2
)

func span(t dag.TaskID, step int32, w platform.WorkerID, start, end time.Duration) schedule.Span {
	return schedule.Span{Task: t, Step: step, Worker: w, Start: start, End: end}
}

// gapSchedule runs one step of a, b and c, and d in two steps on different cores.
//
//	cpu.0  a 0-10                          d1 at 60 after d0's end at 50: 10 of dispatch
//	cpu.1  b 0-20   d0 20-50
//	gpu    c at 37: b ended at 20, x arrived at 25, y at 34, so 20 + 14 + 3
func gapSchedule(p *schedule.Problem) *schedule.Schedule {
	x, _ := p.Graph.BufferByName("x")
	y, _ := p.Graph.BufferByName("y")
	atoms := func(b dag.BufferID) []int32 { first, _ := p.Graph.StorageAtoms(b); return []int32{int32(first)} }
	return &schedule.Schedule{
		Steps: 2, Makespan: 70,
		Spans: []schedule.Span{
			span(taskA, 0, cpu0, 0, 10),
			span(taskB, 0, cpu1, 0, 20),
			span(taskD, 0, cpu1, 20, 50),
			span(taskC, 0, gpu, 37, 57),
			span(taskD, 1, cpu0, 60, 70),
		},
		Transfers: []schedule.Transfer{
			{Buffer: x, Atoms: atoms(x), Bytes: 20, From: 0, To: 1, For: taskC, Start: 10, End: 25},
			{Buffer: y, Atoms: atoms(y), Bytes: 20, From: 0, To: 1, For: taskC, Start: 25, End: 34},
		},
	}
}

func TestIdlesNameTheCauseOfEveryGap(t *testing.T) {
	p := gapProblem(t)
	got := Idles(p, gapSchedule(p))
	want := []Idle{
		{Worker: gpu, Start: 0, End: 20, Cause: WaitPredecessor, Transfer: -1}, // b, which ended after a
		{Worker: gpu, Start: 20, End: 34, Cause: WaitTransfer, Transfer: 1},    // y, which arrived after x
		{Worker: gpu, Start: 34, End: 37, Cause: WaitDispatch, Transfer: -1},
		{Worker: cpu0, Start: 10, End: 50, Cause: WaitPredecessor, Transfer: -1}, // d of step 0, through w
		{Worker: cpu0, Start: 50, End: 60, Cause: WaitDispatch, Transfer: -1},
		{Worker: cpu1, Start: 50, End: 70, Cause: NoWork, Transfer: -1},
		{Worker: gpu, Start: 57, End: 70, Cause: NoWork, Transfer: -1},
	}
	if len(got) != len(want) {
		t.Fatalf("%d gaps, want %d: %+v", len(got), len(want), got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("gap %d is %+v, want %+v", i, got[i], want[i])
		}
	}
}

// A worker is busy or idle, so both add up to the makespan on every worker.
func TestIdlesAndSpansTileEveryWorker(t *testing.T) {
	p := gapProblem(t)
	for _, makespan := range []time.Duration{70, 71, 1000} {
		s := gapSchedule(p)
		s.Makespan = makespan
		total := make([]time.Duration, len(p.Platform.Workers))
		for _, sp := range s.Spans {
			total[sp.Worker] += sp.End - sp.Start
		}
		for _, i := range Idles(p, s) {
			if i.End <= i.Start {
				t.Errorf("gap %+v is empty", i)
			}
			total[i.Worker] += i.End - i.Start
		}
		for w, d := range total {
			if d != makespan {
				t.Errorf("worker %d: busy and idle time add up to %d, makespan %d", w, d, makespan)
			}
		}
	}
}

// An order that a layout added explains a wait just as the graph's own do: with
// c before d, the gap of cpu.1 before d is c's.
func TestIdlesKnowReuseEdges(t *testing.T) {
	p := gapProblem(t)
	p.Reuse = []dag.Edge{{From: taskC, To: taskD}}
	s := &schedule.Schedule{Steps: 1, Makespan: 30, Spans: []schedule.Span{span(taskC, 0, gpu, 0, 18), span(taskD, 0, cpu0, 18, 30)}}
	got := Idles(p, s)
	want := Idle{Worker: cpu0, Start: 0, End: 18, Cause: WaitPredecessor, Transfer: -1}
	if got[0] != want {
		t.Errorf("first gap is %+v, want %+v", got[0], want)
	}
}

func TestWorkerWithoutTasksHasNoWork(t *testing.T) {
	p := gapProblem(t)
	s := &schedule.Schedule{Steps: 1, Makespan: 10, Spans: []schedule.Span{span(taskA, 0, cpu0, 0, 10)}}
	got := Idles(p, s)
	if len(got) != 2 || got[0].Cause != NoWork || got[0].Worker != cpu1 || got[1].Worker != gpu || got[1].End-got[1].Start != 10 {
		t.Errorf("gaps %+v, want cpu.1 and gpu without work from 0 to 10", got)
	}
}
