package simulate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule"
)

// commands writes what an engine commands as "run a on gpu" and "copy x".
func commands(p *schedule.Problem, e *schedule.Engine, cmds []schedule.Command) string {
	var all []string
	for _, c := range cmds {
		switch c.Kind {
		case schedule.RunTask:
			all = append(all, fmt.Sprintf("run %s on %s", p.Graph.Tasks[c.Instance.Task].Name, p.Platform.Workers[c.Worker].Name))
		case schedule.CopyRegion:
			all = append(all, "copy "+p.Graph.Buffers[e.CopyAt(c.Copy).Buffer].Name)
		}
	}
	return strings.Join(all, ", ")
}

// TestOneTaskAhead: three tasks can run on a core and three others on a gpu at once. The
// core is given one, the gpu two, and another one whenever one of its ends.
func TestOneTaskAhead(t *testing.T) {
	b := dag.NewBuilder("six")
	for _, name := range []string{"a", "b", "c"} {
		b.Task(dag.Task{Name: name, Costs: []dag.Cost{{Key: "cpu", Ns: 10}}})
	}
	for _, name := range []string{"u", "v", "w"} {
		b.Task(dag.Task{Name: name, Costs: []dag.Cost{{Key: "gpu", Ns: 10}}})
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	p := problem(t, g, twoMemories(t), 1)
	for _, name := range []string{"eager", "dmda", "dmdar"} {
		e, err := schedule.NewEngine(p, dynamic(t, p, name), func() time.Duration { return 0 })
		if err != nil {
			t.Fatal(err)
		}
		const cpu, gpu = platform.WorkerID(0), platform.WorkerID(1)
		got := commands(p, e, e.Start(nil))
		for _, w := range []platform.WorkerID{gpu, cpu, gpu, gpu, cpu} {
			got += "; " + commands(p, e, e.Done(w, nil))
		}
		want := "run a on cpu, run u on gpu, run v on gpu; run w on gpu; run b on cpu; ; ; run c on cpu"
		if got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// TestOverwritesBehindNobody: the gpu runs a and has taken b, which adds to x. x has come
// from ram and is valid there too, until b overwrites it. When that will be is not known
// before a has ended, and so b is not commanded before. c and d, which name x too, wait for
// each other.
func TestOverwritesBehindNobody(t *testing.T) {
	b := dag.NewBuilder("adds")
	x := b.Buffer(dag.Buffer{Name: "x", Shape: []int{40}, Type: dag.Uint8, Role: dag.Parameter, Home: "host"})
	cost := []dag.Cost{{Key: "gpu", Ns: 10}}
	b.Task(dag.Task{Name: "a", Costs: cost})
	b.Task(dag.Task{Name: "b", Costs: cost, Accesses: []dag.Access{whole(x, dag.ReadWrite)}})
	b.Task(dag.Task{Name: "c", Costs: cost, Accesses: []dag.Access{whole(x, dag.ReadWrite)}})
	b.Task(dag.Task{Name: "d", Costs: cost, Accesses: []dag.Access{whole(x, dag.Read)}})
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	p := problem(t, g, twoMemories(t), 1)
	e, err := schedule.NewEngine(p, dynamic(t, p, "eager"), func() time.Duration { return 0 })
	if err != nil {
		t.Fatal(err)
	}
	start := e.Start(nil)
	if got, want := commands(p, e, start), "run a on gpu, copy x"; got != want {
		t.Fatalf("at the start %s, want %s", got, want)
	}
	got := "after the copy: " + commands(p, e, e.Copied(start[1].Copy, nil))
	for _, name := range []string{"a", "b", "c", "d"} {
		got += "; after " + name + ": " + commands(p, e, e.Done(1, nil))
	}
	if want := "after the copy: ; after a: run b on gpu; after b: run c on gpu; after c: run d on gpu; after d: "; got != want || !e.Finished() {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestForeseen: only the gpu can run a, which takes 100 ns with v of 40 bytes, and then b, which
// takes 10 ns with w of 200; the cpu updates w in 10 ns after b. w comes when the engine has
// brought v at 50, until 260, while a runs to 150 and b waits; b runs to 270, w is updated at 280
// and comes again until 490, while a runs to 370; b to 500, the update to 510. Were w to come when
// b is ready, at 150 and at 370, it would all take 100 and then 90 ns longer.
func TestForeseen(t *testing.T) {
	pl := twoMemories(t)
	pl.Devices[1].CopyEnginesIn = 1
	b := dag.NewBuilder("foreseen")
	v := b.Buffer(dag.Buffer{Name: "v", Shape: []int{40}, Type: dag.Uint8, Role: dag.Input, Home: "host"})
	w := b.Buffer(dag.Buffer{Name: "w", Shape: []int{200}, Type: dag.Uint8, Role: dag.Parameter, Home: "host"})
	x := b.Buffer(dag.Buffer{Name: "x", Shape: []int{1}, Type: dag.Uint8})
	cost := func(device string, ns int64) []dag.Cost { return []dag.Cost{{Key: device, Ns: ns}} }
	b.Task(dag.Task{Name: "a", Costs: cost("gpu", 100), Accesses: []dag.Access{whole(v, dag.Read), whole(x, dag.Write)}})
	b.Task(dag.Task{Name: "b", Costs: cost("gpu", 10), Accesses: []dag.Access{whole(x, dag.Read), whole(w, dag.Read)}})
	b.Task(dag.Task{Name: "update", Costs: cost("cpu", 10), Accesses: []dag.Access{whole(w, dag.ReadWrite)}})
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	p := problem(t, g, pl, 2)
	for _, policy := range []string{"eager", "dmda", "dmdar"} {
		s := runChecked(t, p, dynamic(t, p, policy))
		if got, want := moves(p, s), "v fetch 0-50, w prefetch 50-260, w prefetch 280-490"; got != want || s.Makespan != 510 {
			t.Errorf("%s: %s in %v, want %s in 510ns", policy, got, s.Makespan, want)
		}
	}
}

// TestForeseenWaits: on a bus whose 1 GB/s all share, a on the first gpu reads x of 40 bytes, b on
// the second y of 40, and c there, after a, x. What a and b wait for comes first, each with half the bus: in
// 10 + 80 ns. Only then x comes to the second gpu: from the first, by a link of its own in 10 ns.
func TestForeseenWaits(t *testing.T) {
	pl := twoGPUs()
	pl.Links[0].Sharing = platform.Shared
	pl.Links = append(pl.Links, platform.Link{Name: "bridge", BandwidthBytesPerSec: 4e9, Sharing: platform.Shared, PowerSource: platform.Guess})
	pl.Routes = append(pl.Routes, platform.Route{From: 1, To: 2, Links: []platform.LinkID{1}})
	complete(t, pl)
	b := dag.NewBuilder("waits")
	x := b.Buffer(dag.Buffer{Name: "x", Shape: []int{40}, Type: dag.Uint8, Role: dag.Input, Home: "host"})
	y := b.Buffer(dag.Buffer{Name: "y", Shape: []int{40}, Type: dag.Uint8, Role: dag.Input, Home: "host"})
	a := b.Task(dag.Task{Name: "a", Costs: []dag.Cost{{Key: "g1", Ns: 100}}, Accesses: []dag.Access{whole(x, dag.Read)}})
	b.Task(dag.Task{Name: "b", Costs: []dag.Cost{{Key: "g2", Ns: 10}}, Accesses: []dag.Access{whole(y, dag.Read)}})
	b.Task(dag.Task{Name: "c", Costs: []dag.Cost{{Key: "g2", Ns: 10}}, Accesses: []dag.Access{whole(x, dag.Read)}, After: []dag.TaskID{a}})
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	p := problem(t, g, pl, 1)
	s := runChecked(t, p, dynamic(t, p, "eager"))
	if got, want := moves(p, s), "x fetch 0-90, y fetch 0-90, x prefetch 90-100"; got != want || s.Transfers[2].From != 1 {
		t.Errorf("%s from memory %d, want %s from 1", got, s.Transfers[len(s.Transfers)-1].From, want)
	}
}
