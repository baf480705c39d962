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
