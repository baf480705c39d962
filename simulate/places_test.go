package simulate

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/layout"
)

// TestSharedPlaces: in memories so small that storages share bytes, every policy, also one
// that takes tasks from those for whom their operands were brought, comes to the end of
// random runs, and Check, which compares the places by itself, finds no two storages at
// once at the same bytes.
func TestSharedPlaces(t *testing.T) {
	evictions, shared, seeds := 0, 0, uint64(300)
	for seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 5))
		pl := randomPlatform(t, r)
		if len(pl.Memories) == 1 {
			continue
		}
		for d := range pl.Devices {
			pl.Devices[d].CopyEnginesIn, pl.Devices[d].CopyEnginesOut = r.IntN(3), r.IntN(3)
		}
		tasks := randomGraph(r, pl)
		g := tasks.build(t, inOrder(len(tasks.tasks)))
		p := problem(t, g, pl, 1+int(seed%12))
		if !sharePlaces(p, r) {
			continue
		}
		for _, l := range p.Layouts {
			if l != nil && overlaps(l) {
				shared++
			}
		}
		for name, policy := range map[string]schedule.Policy{"eager": dynamic(t, p, "eager"), "dmda": dynamic(t, p, "dmda"),
			"dmdar": dynamic(t, p, "dmdar"), "thief": &thief{}} {
			s, err := run(p, how{policy: policy})
			if err != nil && strings.Contains(err.Error(), "has no place") {
				continue // a task can run in that memory only
			}
			if err != nil {
				t.Fatalf("seed %d, %s: %v", seed, name, err)
			}
			if err := s.Check(p); err != nil {
				t.Fatalf("seed %d, %s: %v", seed, name, err)
			}
			evictions += len(s.Evictions)
		}
	}
	if shared < 50 || evictions < 500 {
		t.Errorf("storages share bytes in %d memories, and there are %d evictions", shared, evictions)
	}
}

// sharePlaces gives every memory but the host's some pieces of 64 bytes, of which each
// buffer takes one; false: what is at home there does not fit.
func sharePlaces(p *schedule.Problem, r *rand.Rand) bool {
	for m := 1; m < len(p.Platform.Memories); m++ {
		p.Platform.Memories[m].CapacityBytes = layout.Alignment * int64(2+r.IntN(max(1, len(p.Graph.Buffers)-2)))
	}
	var err error
	p.Layouts, err = layoutsOf(p)
	return err == nil
}

func layoutsOf(p *schedule.Problem) ([]*layout.Layout, error) {
	priced, err := priceOf(p)
	if err != nil {
		return nil, err
	}
	eager, err := schedule.PolicyByName("eager")
	if err != nil {
		return nil, err
	}
	d, err := priced.Decide(schedule.Choice{Policy: eager})
	if err != nil {
		return nil, err
	}
	layouts := d.Layouts(0)
	layouts[p.Platform.HostMemory()] = nil // whose orders the problem does not have
	return layouts, nil
}

// overlaps reports whether a layout gives some bytes of the step arena twice: each buffer
// of the random graphs takes one piece.
func overlaps(l *layout.Layout) bool {
	seen := map[int64]bool{}
	for b, at := range l.Offset {
		if l.Arena[b] != layout.StepArena || at == layout.Elsewhere {
			continue
		}
		if seen[at] {
			return true
		}
		seen[at] = true
	}
	return false
}

// TestOneOfTwoIsThere: a gpu of 128 bytes has places for two of three operands of 40
// bytes; x, y and z are given them in the order of their names, so that z lies where x
// does, which is the lowest. a reads x (it comes at 0-50), b, taken when a begins to run,
// reads y (50-100), both of which stay. c reads z and is taken at 100: x, valid in ram too,
// is dropped, and z comes at 100-150. d, taken then, reads y, which is still there. e reads
// x and is taken at 160, when c has ended and d runs: z goes, and x comes until 210.
func TestOneOfTwoIsThere(t *testing.T) {
	pl := twoMemories(t)
	pl.Memories[1].CapacityBytes = 128
	g := onGPU(t, "x", "y", "z", "y", "x")
	p := problem(t, g, pl, 1)
	var err error
	if p.Layouts, err = layoutsOf(p); err != nil {
		t.Fatal(err)
	}
	want := "x fetch 0-50, y fetch 50-100, x leaves 100, z fetch 100-150, z leaves 160, x fetch 160-210"
	if got := moves(p, runChecked(t, p, dynamic(t, p, "eager"))); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// coreTakesAll lets the gpu, where it is allowed, expect each task, and hands all to the cpu.
type coreTakesAll struct{ queue []dag.Instance }

func (q *coreTakesAll) Ready(v *schedule.View, i dag.Instance) platform.WorkerID {
	q.queue = append(q.queue, i)
	workers := v.Workers(i.Task)
	return workers[len(workers)-1]
}

func (q *coreTakesAll) Next(_ *schedule.View, w platform.WorkerID) (i dag.Instance, ok bool) {
	if w != 0 || len(q.queue) == 0 {
		return i, false
	}
	i, q.queue = q.queue[0], q.queue[1:]
	return i, true
}

// TestWriteWaitsForCopies: a keeps the cpu until 10. b reads x, 40 bytes, and is expected
// on the gpu, so that x goes there (0-50), but runs on the cpu from 10 to 20. c writes x
// and follows b at once, if it were not for the copy that still reads it.
func TestWriteWaitsForCopies(t *testing.T) {
	b := dag.NewBuilder("late copy")
	x := b.Buffer(dag.Buffer{Name: "x", Shape: []int{40}, Type: dag.Uint8, Role: dag.Parameter, Home: "host"})
	cpu, gpu := dag.Cost{Key: "cpu", Ns: 10}, dag.Cost{Key: "gpu", Ns: 10}
	b.Task(dag.Task{Name: "a", Costs: []dag.Cost{cpu}})
	b.Task(dag.Task{Name: "b", Costs: []dag.Cost{cpu, gpu}, Accesses: []dag.Access{whole(x, dag.Read)}})
	b.Task(dag.Task{Name: "c", Costs: []dag.Cost{cpu}, Accesses: []dag.Access{whole(x, dag.Write)}})
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	p := problem(t, g, twoMemories(t), 1)
	s := runChecked(t, p, &coreTakesAll{})
	if got, want := moves(p, s), "x prefetch 0-50"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for i, start := range []time.Duration{0, 10, 50} {
		if s.Spans[i].Start != start {
			t.Errorf("task %d starts at %d, want %d", i, s.Spans[i].Start, start)
		}
	}
}
