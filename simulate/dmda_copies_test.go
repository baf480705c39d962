package simulate

import (
	"testing"
	"time"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule"
)

// What dmda expects of copies. In each case a task can run on the cpu, for as long as is
// written here, or on a device that ends it at a known time: it goes to the cpu unless that
// takes longer. The bus moves a byte per ns, 10 ns after it was asked.

// reader is a task that reads buffers of the host's memory, with its costs by device.
type reader struct {
	name  string
	reads []string
	ns    map[string]int64
}

// readers builds tasks that are ready at the start, over buffers of so many bytes; the home
// of one is the host's memory if it has no other.
func readers(t *testing.T, bytes map[string]int, homes map[string]string, tasks ...reader) *dag.Graph {
	t.Helper()
	b := dag.NewBuilder("readers")
	buffers := map[string]dag.BufferID{}
	for _, task := range tasks {
		var accesses []dag.Access
		for _, name := range task.reads {
			if _, ok := buffers[name]; !ok {
				home := "host"
				if homes[name] != "" {
					home = homes[name]
				}
				buffers[name] = b.Buffer(dag.Buffer{Name: name, Shape: []int{bytes[name]}, Type: dag.Uint8, Role: dag.Input, Home: home})
			}
			accesses = append(accesses, whole(buffers[name], dag.Read))
		}
		var costs []dag.Cost
		for _, device := range []string{"cpu", "gpu", "g1", "g2"} {
			if ns, ok := task.ns[device]; ok {
				costs = append(costs, dag.Cost{Key: device, Ns: ns})
			}
		}
		b.Task(dag.Task{Name: task.name, Costs: costs, Accesses: accesses})
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// goesWhere runs dmda and compares where a task ran and when all had ended.
func goesWhere(t *testing.T, pl *platform.Platform, g *dag.Graph, task, worker string, makespan time.Duration) {
	t.Helper()
	p := problem(t, g, pl, 1)
	s := runChecked(t, p, dynamic(t, p, "dmda"))
	if got := workerOf(p, s, task); got != worker || s.Makespan != makespan {
		t.Errorf("%s on %s, makespan %d; want %s, %d; moves %s", task, got, s.Makespan, worker, makespan, moves(p, s))
	}
}

// TestDMDACountsEachCopy: x and y of 40 bytes come at once, 10 ns and then 80 on the bus
// they share: the gpu ends at 90 + 10. With one engine y waits for x, and its latency
// counts, too: 50 + 50 + 10.
func TestDMDACountsEachCopy(t *testing.T) {
	for engines, ends := range map[int]int64{0: 100, 1: 110, 2: 100} {
		pl := twoMemories(t)
		pl.Devices[1].CopyEnginesIn = engines
		for _, cpu := range []int64{ends, ends + 1} {
			g := readers(t, map[string]int{"x": 40, "y": 40}, nil, reader{"a", []string{"x", "y"}, map[string]int64{"cpu": cpu, "gpu": 10}})
			goesWhere(t, pl, g, "a", map[bool]string{true: "cpu", false: "gpu"}[cpu == ends], time.Duration(ends))
		}
	}
}

// TestDMDAWaitsBehindOperands: the gpu fetches x of 200 bytes for a until 210 and runs it to
// 220. Behind it b, which reads nothing, ends at 230 there.
func TestDMDAWaitsBehindOperands(t *testing.T) {
	for cpu, want := range map[int64]string{229: "cpu", 230: "cpu", 231: "gpu"} {
		g := readers(t, map[string]int{"x": 200}, nil, reader{"a", []string{"x"}, map[string]int64{"gpu": 10}},
			reader{"b", nil, map[string]int64{"cpu": cpu, "gpu": 10}})
		goesWhere(t, twoMemories(t), g, "b", want, time.Duration(min(cpu, 230)))
	}
}

// TestDMDASeesCopiesOfTheSameMoment: a and b are ready at once. y of 40 bytes comes behind x
// of 200 for which a is the reason, on one engine, until 210 + 50; b would end at 270.
func TestDMDASeesCopiesOfTheSameMoment(t *testing.T) {
	for cpu, want := range map[int64]string{269: "cpu", 270: "cpu", 271: "gpu"} {
		pl := twoMemories(t)
		pl.Devices[1].CopyEnginesIn = 1
		g := readers(t, map[string]int{"x": 200, "y": 40}, nil, reader{"a", []string{"x"}, map[string]int64{"gpu": 10}},
			reader{"b", []string{"y"}, map[string]int64{"cpu": cpu, "gpu": 10}})
		goesWhere(t, pl, g, "b", want, time.Duration(min(cpu, 270)))
	}
}

// TestDMDACountsSharedLinks: a and b fetch 200 bytes each, to two gpus. On a bus that
// each has to itself both have come at 210, and b ends at 220. One more before it is shared:
// 400 bytes pass it in 400 ns, after 15 of latency, and b ends at 425.
func TestDMDACountsSharedLinks(t *testing.T) {
	for _, shared := range []bool{false, true} {
		ends := int64(220)
		if shared {
			ends = 425
		}
		for _, cpu := range []int64{ends, ends + 1} {
			pl := twoGPUs()
			if shared {
				pl.Links = append(pl.Links, platform.Link{Name: "up", BandwidthBytesPerSec: 1e9, Latency: 5, Sharing: platform.Duplex, PowerSource: platform.Guess})
				for r := range pl.Routes {
					pl.Routes[r].Links = []platform.LinkID{1, 0}
				}
			}
			complete(t, pl)
			g := readers(t, map[string]int{"x": 200, "y": 200}, nil, reader{"a", []string{"x"}, map[string]int64{"g1": 10}},
				reader{"b", []string{"y"}, map[string]int64{"cpu": cpu, "g2": 10}})
			goesWhere(t, pl, g, "b", map[bool]string{true: "cpu", false: "g2"}[cpu == ends], time.Duration(ends))
		}
	}
}

// TestDMDACollectsFromAllMemories: x is on one gpu and y on the other, 40 bytes each. Both
// are with the cpu at 50. On the first gpu y is at 60, over two buses, and the task ends at
// 61.
func TestDMDACollectsFromAllMemories(t *testing.T) {
	pl := twoGPUs()
	complete(t, pl)
	for cpu, want := range map[int64]string{10: "cpu", 11: "cpu", 12: "g1"} {
		g := readers(t, map[string]int{"x": 40, "y": 40}, map[string]string{"x": "m1", "y": "m2"},
			reader{"a", []string{"x", "y"}, map[string]int64{"cpu": cpu, "g1": 1}})
		goesWhere(t, pl, g, "a", want, time.Duration(min(50+cpu, 61)))
	}
}

// takesOver gives every task to the gpu, and the cpu takes the first of them for itself.
type takesOver struct{ waiting []dag.Instance }

func (q *takesOver) Ready(_ *schedule.View, i dag.Instance) platform.WorkerID {
	q.waiting = append(q.waiting, i)
	return 1
}

func (q *takesOver) Next(v *schedule.View, w platform.WorkerID) (dag.Instance, bool) {
	if len(q.waiting) == 0 || !v.CanRun(q.waiting[0].Task, w) {
		return dag.Instance{}, false
	}
	first := q.waiting[0]
	q.waiting = q.waiting[1:]
	return first, true
}

// TestTakenOverTasksNeedNoCopies: x does not come to the gpu for a, which the cpu takes
// over. It comes, all the same, for b, which the gpu keeps: the cpu cannot run it.
func TestTakenOverTasksNeedNoCopies(t *testing.T) {
	a := reader{"a", []string{"x"}, map[string]int64{"cpu": 10, "gpu": 10}}
	b := reader{"b", []string{"x"}, map[string]int64{"gpu": 10}}
	for _, c := range []struct {
		tasks []reader
		moves string
	}{
		{[]reader{a}, ""},
		{[]reader{a, b}, "x fetch 0-50"},
	} {
		p := problem(t, readers(t, map[string]int{"x": 40}, nil, c.tasks...), twoMemories(t), 1)
		if got := moves(p, runChecked(t, p, &takesOver{})); got != c.moves {
			t.Errorf("%d tasks: moves %q, want %q", len(c.tasks), got, c.moves)
		}
	}
}
