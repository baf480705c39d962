package schedule

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"dahl/dag"
	"dahl/platform"
)

// TestLinesAreFree: copies that have started should have come at 100, urgent ones that
// wait take 30, early ones 7. A copy in two such lines waits for both.
func TestLinesAreFree(t *testing.T) {
	in := &line{waiting: [2]time.Duration{30, 7}, moving: 1, until: 100}
	out := &line{waiting: [2]time.Duration{41, 0}}
	for _, c := range []struct {
		lines  lines
		now    time.Duration
		urgent bool
		want   time.Duration
	}{
		{nil, 80, false, 80},
		{lines{in}, 80, true, 130},      // 100 + 30
		{lines{in}, 80, false, 137},     // 100 + 30 + 7
		{lines{in}, 120, true, 150},     // late already: 120 + 30
		{lines{in, out}, 80, true, 130}, // 130 and 80 + 41
		{lines{in, out}, 95, true, 136}, // 130 and 95 + 41
	} {
		if got := c.lines.free(c.now, c.urgent); got != c.want {
			t.Errorf("%d lines at %d, urgent %v: free at %d, want %d", len(c.lines), c.now, c.urgent, got, c.want)
		}
	}
}

// TestStartsAt: a worker is free at 50. Operands that come early for 70 are waited for
// until then; where they take 15 when they are asked for at its turn, until 65; where the
// engines are busy with urgent copies until 60, until 75, so that the early ones are first.
func TestStartsAt(t *testing.T) {
	v := &View{FreeAt: func(platform.WorkerID) time.Duration { return 50 }}
	for _, c := range []struct {
		a    Arrival
		want time.Duration
	}{
		{Arrival{}, 50},
		{Arrival{Soon: 40, Urgent: 40, Takes: 15}, 50},
		{Arrival{Soon: 70, Urgent: 40, Takes: 15}, 65},
		{Arrival{Soon: 70, Urgent: 60, Takes: 15}, 70},
		{Arrival{Soon: Never, Urgent: 60, Takes: 15}, 75},
	} {
		if got := v.StartsAt(0, c.a); got != c.want {
			t.Errorf("%+v: starts at %d, want %d", c.a, got, c.want)
		}
	}
}

// hostAndDevices is a core, and one to three devices with memories of their own.
func hostAndDevices(t *testing.T, r *rand.Rand) *platform.Platform {
	t.Helper()
	p := &platform.Platform{Name: "random", Memories: []platform.Memory{{Name: "ram"}}, Devices: []platform.Device{{Name: "cpu", Kind: "cpu", Count: 1, PowerSource: platform.Guess}}}
	for i := range 1 + r.IntN(3) {
		name, memory := fmt.Sprint("d", i), platform.MemoryID(1+i)
		p.Memories = append(p.Memories, platform.Memory{Name: "m" + name})
		p.Devices = append(p.Devices, platform.Device{Name: name, Kind: "emulated", Count: 1 + r.IntN(2), Memory: memory,
			CopyEnginesIn: r.IntN(3), CopyEnginesOut: r.IntN(3), PowerSource: platform.Guess})
		p.Links = append(p.Links, platform.Link{Name: "l" + name, BandwidthBytesPerSec: 1e9, Latency: 2, PowerSource: platform.Guess})
		p.Routes = append(p.Routes, platform.Route{To: memory, Links: []platform.LinkID{platform.LinkID(i)}})
	}
	if err := p.Complete(); err != nil {
		t.Fatal(err)
	}
	return p
}

// passedOn is a random graph of tasks that read and write parts of parameters and activations.
func passedOn(t *testing.T, r *rand.Rand) *dag.Graph {
	t.Helper()
	b := dag.NewBuilder("passed on")
	part := func(buffer int, mode dag.Mode) dag.Access {
		lo := r.IntN(7)
		return dag.Access{Region: dag.Region{Buffer: dag.BufferID(buffer), Box: dag.Box{{Lo: lo, Hi: lo + 1 + r.IntN(7-lo)}}}, Mode: mode}
	}
	buffers := 3 + r.IntN(4)
	for i := range buffers {
		role := []dag.Role{dag.Parameter, dag.Activation}[r.IntN(2)]
		b.Buffer(dag.Buffer{Name: fmt.Sprint("b", i), Shape: []int{7}, Type: dag.Float32, Role: role})
	}
	for i := range 3 + r.IntN(15) {
		order := r.Perm(buffers)
		b.Task(dag.Task{Name: fmt.Sprint("t", i), Costs: []dag.Cost{{Key: dag.AnyDevice, Ns: int64(r.IntN(20))}},
			Accesses: []dag.Access{part(order[0], dag.Read), part(order[1], dag.Read), part(order[2], []dag.Mode{dag.Write, dag.ReadWrite}[r.IntN(2)])}})
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestWhatArrivalsAreReckonedWith drives random runs in memories that hold little more
// than the largest task, and adds up after each event, from the queues and the instances
// alone, what the engine keeps count of: the time of the copies that wait in each line, and
// the bytes that the tasks given to each memory name.
func TestWhatArrivalsAreReckonedWith(t *testing.T) {
	waited, named := 0, 0
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 23))
		pl, g := hostAndDevices(t, r), passedOn(t, r)
		costs, err := unboundCosts(g, pl)
		if err != nil {
			t.Fatal(err)
		}
		p := &Problem{Graph: g, Platform: pl, Costs: costs, Steps: 1 + int(seed%5)}
		for m := range pl.Memories {
			if platform.MemoryID(m) != pl.HostMemory() {
				pl.Memories[m].CapacityBytes = 1
			}
		}
		largest := slices.Max(newFootprint(p).bytes)
		for m := range pl.Memories {
			if pl.Memories[m].CapacityBytes == 1 {
				pl.Memories[m].CapacityBytes = largest + int64(r.IntN(60))
			}
		}
		var now time.Duration
		e, err := NewEngine(p, newDMDA(p), func() time.Duration { return now })
		if err != nil {
			continue // what is at home in a memory does not fit
		}
		for cmds := e.Start(nil); len(cmds) > 0 && e.Err() == nil; now += time.Duration(r.IntN(5)) {
			w, n := addUp(t, e)
			waited, named = waited+w, named+n
			k := r.IntN(len(cmds))
			c := cmds[k]
			cmds = slices.Delete(cmds, k, k+1)
			switch c.Kind {
			case RunTask:
				cmds = e.Done(c.Worker, cmds)
			case CopyRegion:
				cmds = e.Copied(c.Copy, cmds)
			}
		}
		if e.Err() == nil && !e.Finished() {
			t.Fatalf("seed %d: the run stands still", seed)
		}
	}
	if waited < 100 || named < 1000 {
		t.Errorf("only %d waiting copies and %d named atoms were seen", waited, named)
	}
}

// addUp compares the counts of an engine with what they count, and returns how many copies
// wait and how many atoms are named.
func addUp(t *testing.T, e *Engine) (copies, atoms int) {
	t.Helper()
	waiting := map[*line][2]time.Duration{}
	for k := range e.copies.queue.ways {
		way := &e.copies.queue.ways[k]
		for _, f := range way.copies {
			for _, l := range way.lines {
				takes, sum := e.p.Platform.RouteTime(f.From, f.To, f.Bytes), waiting[l]
				if l.link != noLink {
					takes = time.Duration(math.Ceil(1e9 * float64(f.Bytes) / e.p.Platform.Links[l.link].BandwidthBytesPerSec))
				}
				if f.Bytes == 0 { // others have taken over all that it was to bring
					takes = 0
				}
				sum[f.expected()] += takes
				waiting[l] = sum
			}
			copies++
		}
	}
	for k := range e.copies.queue.ways {
		for _, l := range e.copies.queue.ways[k].lines {
			if l.waiting != waiting[l] {
				t.Fatalf("a line has %d waiting, its copies take %d", l.waiting, waiting[l])
			}
		}
	}
	for m, evictor := range e.resident.evictors {
		if evictor == nil {
			continue
		}
		accesses, bytes := make([]int32, e.p.Graph.NumAtoms()), int64(0)
		for slot := range e.instances {
			x := &e.instances[slot]
			if x.phase == blocked || x.worker == Undecided || e.p.Platform.MemoryOf(x.worker) != platform.MemoryID(m) {
				continue
			}
			task := dag.TaskID(slot % len(e.p.Graph.Tasks))
			for k := range e.p.Graph.Tasks[task].Accesses {
				for _, a := range e.p.Graph.Atoms(task, k) {
					if accesses[a]++; accesses[a] == 1 && e.resident.valid[a] != everywhere {
						bytes += e.resident.bytes(a)
						atoms++
					}
				}
			}
		}
		if !slices.Equal(evictor.idle.named, accesses) || evictor.namedBytes != bytes {
			t.Fatalf("memory %d: %d bytes and accesses %d named, want %d and %d", m, evictor.namedBytes, evictor.idle.named, bytes, accesses)
		}
		for a, n := range accesses {
			if n > 0 && evictor.idle.spare.has(int32(a)) || n == 0 && evictor.idle.wanted.has(int32(a)) {
				t.Fatalf("memory %d: atom %d, which %d accesses name, waits to leave among the others", m, a, n)
			}
		}
	}
	return copies, atoms
}
