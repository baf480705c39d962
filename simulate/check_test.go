package simulate

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/platform"
	"dahl/platforms/testmachine"
	"dahl/schedule"
	"dahl/schedule/audit"
	"dahl/schedule/policy"
)

// twoMemories is a host and a device joined by a link of 1 GB/s and 10 ns latency:
// a byte takes a nanosecond.
func twoMemories(t testing.TB) *platform.Platform {
	p := testmachine.Node(t, testmachine.CPU(1), testmachine.GPU("gpu"))
	p.Links[0].Latency, p.Links[0].Sharing = 10, platform.Duplex
	must.Do(t, p.Complete())
	return p
}

// pingPong is a loop over two memories: a (cpu) turns the parameter w into x, b
// (gpu) turns x and w into y, c (cpu) adds y to w. 40 bytes each.
func pingPong(t testing.TB) *dag.Graph {
	b := dag.NewBuilder("ping-pong")
	w := b.Buffer(dag.Buffer{Name: "w", Shape: []int{10}, Type: dag.Float32, Role: dag.Parameter, Home: "host"})
	x := b.Buffer(dag.Buffer{Name: "x", Shape: []int{10}, Type: dag.Float32})
	y := b.Buffer(dag.Buffer{Name: "y", Shape: []int{10}, Type: dag.Float32})
	use := func(b dag.BufferID, m dag.Mode) dag.Access { return dag.Access{Region: dag.Region{Buffer: b}, Mode: m} }
	b.Task(dag.Task{Name: "a", Costs: []dag.Cost{{Key: "cpu", Ns: 5}}, Accesses: []dag.Access{use(w, dag.Read), use(x, dag.Write)}})
	b.Task(dag.Task{Name: "b", Costs: []dag.Cost{{Key: "gpu", Ns: 7}}, Accesses: []dag.Access{use(w, dag.Read), use(x, dag.Read), use(y, dag.Write)}})
	b.Task(dag.Task{Name: "c", Costs: []dag.Cost{{Key: "cpu", Ns: 3}}, Accesses: []dag.Access{use(w, dag.ReadWrite), use(y, dag.Read)}})
	g := must.Get(b.Build())(t)
	return g
}

// TestPingPong derives one whole run by hand, with HEFT's plan (each task has one
// place). At 0, a starts and w begins to move to the gpu: 10 ns latency and 40 ns
// for 40 bytes, so it arrives at 50. a ends at 5 and x begins to move. From 15,
// when its latency has passed, to 50 two flows share the link at 1/2 B/ns: by 50
// w has been served 5+17.5 = 22.5 bytes, so w does not arrive at 50 after all.
// It has 40 - 5 = 35 bytes left at 15 and gets half: 70 ns more, to 85; x has
// then been served 35 and needs 5 more alone: 90. b runs 90 to 97; y takes 50 and
// arrives at 147; c runs 147 to 150. The second step is the same from 150 on: a
// waits for c, and w moves again, as c wrote it.
func TestPingPong(t *testing.T) {
	p := problem(t, pingPong(t), twoMemories(t), 2)
	plan := must.Get(policy.HEFT.Plan(p))(t)
	s := must.Get(run(p, how{plan: plan}))(t)
	must.Do(t, audit.Check(s, p))
	type row struct {
		name       string
		start, end time.Duration
	}
	var got []row
	for _, span := range s.Spans {
		got = append(got, row{p.Graph.Tasks[span.Task].Name, span.Start, span.End})
	}
	want := []row{{"a", 0, 5}, {"b", 90, 97}, {"c", 147, 150}, {"a", 150, 155}, {"b", 240, 247}, {"c", 297, 300}}
	if !slices.Equal(got, want) {
		t.Errorf("spans %v, want %v", got, want)
	}
	got = nil
	for _, tr := range s.Transfers {
		got = append(got, row{p.Graph.Buffers[tr.Buffer].Name, tr.Start, tr.End})
	}
	// As every step does, the last one brings w for the next, alone on the link.
	want = []row{{"w", 0, 85}, {"x", 5, 90}, {"y", 97, 147}, {"w", 150, 235}, {"x", 155, 240}, {"y", 247, 297}, {"w", 300, 350}}
	if !slices.Equal(got, want) {
		t.Errorf("transfers %v, want %v", got, want)
	}
	if s.Makespan != 300 || s.FirstStep != 150 || s.Period != 150 {
		t.Errorf("makespan %d, first step %d, period %d; want 300, 150, 150", s.Makespan, s.FirstStep, s.Period)
	}
	// While b runs: ram holds w and x, the gpu w, x and y. While c runs x is gone,
	// and y is in both. From 97, y moves to ram, which holds w and y: 80 bytes.
	if want := []int64{80, 120}; !slices.Equal(s.PeakBytes, want) {
		t.Errorf("peaks %d, want %d", s.PeakBytes, want)
	}
}

// TestCheckRefuses breaks a sound schedule in every way that Check knows.
func TestCheckRefuses(t *testing.T) {
	p := problem(t, pingPong(t), twoMemories(t), 3)
	plan := must.Get(policy.HEFT.Plan(p))(t)
	breaks := map[string]func(s *schedule.Schedule){
		"a span is missing":            func(s *schedule.Schedule) { s.Spans = s.Spans[1:] },
		"a task runs twice":            func(s *schedule.Schedule) { s.Spans[1].Task = s.Spans[0].Task },
		"a task runs where it cannot":  func(s *schedule.Schedule) { s.Spans[1].Worker = 0 },
		"a task ends before it starts": func(s *schedule.Schedule) { s.Spans[0].End = -1 },
		"a task starts before it is ready": func(s *schedule.Schedule) {
			s.Spans[0].Ready = s.Spans[0].Start + 1
		},
		"a predecessor ends too late":       func(s *schedule.Schedule) { s.Spans[0].End = s.Spans[1].Start + 1 },
		"a step starts before the last one": func(s *schedule.Schedule) { s.Spans[3].Start = s.Spans[2].End - 1 },
		"an operand never moves":            func(s *schedule.Schedule) { s.Transfers = s.Transfers[1:] },
		"an operand moves too late":         func(s *schedule.Schedule) { s.Transfers[0].End = s.Spans[1].Start + 1 },
		"an operand moves before it is written": func(s *schedule.Schedule) {
			s.Transfers[2].Start = s.Spans[1].Start
		},
		"an operand moves twice": func(s *schedule.Schedule) {
			s.Transfers = slices.Insert(s.Transfers, 0, s.Transfers[0])
		},
		"a transfer is faster than its link": func(s *schedule.Schedule) { s.Transfers[2].End = s.Transfers[2].Start + 48 },
		"a transfer has other bytes":         func(s *schedule.Schedule) { s.Transfers[0].Bytes++ },
		"the makespan is wrong":              func(s *schedule.Schedule) { s.Makespan++ },
		"the period is wrong":                func(s *schedule.Schedule) { s.Period++ },
		"a peak is wrong":                    func(s *schedule.Schedule) { s.PeakBytes[1]-- },
		"the occupancy is wrong":             func(s *schedule.Schedule) { s.Memory = s.Memory[:1] },
	}
	for name, spoil := range breaks {
		s := must.Get(run(p, how{plan: plan}))(t)
		must.Do(t, audit.Check(s, p))
		spoil(s)
		if err := audit.Check(s, p); err == nil {
			t.Errorf("%s, and Check says nothing", name)
		}
	}
	s := must.Get(run(p, how{plan: plan}))(t)
	p.Platform.Memories[1].CapacityBytes = 119
	if audit.Check(s, p) == nil {
		t.Error("120 bytes in a memory of 119, and Check says nothing")
	}
}

// TestStealing: a policy that assigns every task to one worker and lets others
// take it makes the engine move operands for nothing; what they run on is right
// all the same. It also guards the random tests against running without transfers.
func TestStealing(t *testing.T) {
	const seeds = 50
	transfers := 0
	for seed := range uint64(seeds) {
		r := rand.New(rand.NewPCG(seed, 1))
		pl := randomPlatform(t, r)
		tasks := randomGraph(r, pl)
		p := problem(t, tasks.build(t, inOrder(len(tasks.tasks))), pl, 3)
		s := must.Get(run(p, how{policy: by(&thief{})}))(t)
		if err := audit.Check(s, p); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		transfers += len(s.Transfers)
	}
	if transfers < 2*seeds {
		t.Errorf("only %d transfers in %d runs", transfers, seeds)
	}
}

// thief assigns every task to the first worker that can run it and lets any
// worker take it: what was fetched for one may be needed by another.
type thief struct{ queue []dag.Instance }

func (q *thief) Ready(v *policy.View, i dag.Instance) platform.WorkerID {
	q.queue = append(q.queue, i)
	return v.Workers(i.Task)[0]
}

func (q *thief) Next(v *policy.View, w platform.WorkerID) (dag.Instance, bool) {
	for k := len(q.queue) - 1; k >= 0; k-- {
		if i := q.queue[k]; v.CanRun(i.Task, w) {
			q.queue = slices.Delete(q.queue, k, k+1)
			return i, true
		}
	}
	return dag.Instance{}, false
}
