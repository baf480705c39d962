package certificate

import (
	"strings"
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/plan/problem"
	"dahl/plan/space"
	"dahl/plan/tiling"
	"dahl/platform"
	"dahl/platforms/testmachine"
	"dahl/schedule"
)

// diamond prices a graph of four tasks with given costs, a before b and c before d, on a shipped machine.
func diamond(t *testing.T, machine string) *schedule.Priced {
	t.Helper()
	b := dag.NewBuilder("diamond")
	for i, after := range [][]dag.TaskID{nil, {0}, {0}, {1, 2}} {
		b.Task(dag.Task{Name: string(rune('a' + i)), Op: "op", Costs: []dag.Cost{{Key: "*", Ns: int64(3000 * (i + 1))}}, After: after})
	}
	g := must.Get(b.Build())(t)
	p := must.Get(platform.Load("../../platforms/" + machine + ".toml"))(t)
	return must.Get(schedule.Price(&dag.Program{Name: "diamond", Graphs: []*dag.Graph{g}}, p, schedule.Unbound))(t)
}

func modelOn(t *testing.T, priced *schedule.Priced, set string, o problem.Objective) *Model {
	t.Helper()
	if set != "" {
		priced = must.Get(priced.On(set))(t)
	}
	return must.Get(NewModel(priced, o, true))(t)
}

// Where a graph gives the times of its tasks, they are the same on any set of devices, and units that a set
// leaves out draw what they draw idle. So all devices relax every set, and a set every set of fewer units of the
// same devices, but none that has a device more. Nothing depends on units elsewhere. What is proved of a set
// with one unit of a device holds for none of more.
func TestRelaxesWithGivenCosts(t *testing.T) {
	priced := diamond(t, "server")
	sets := space.Sets(priced.Platform, priced.Program.Graphs[0])
	for _, o := range []problem.Objective{problem.Time, problem.Energy} {
		all := modelOn(t, priced, "", o)
		for i := 0; i < len(sets); i += 7 {
			m := modelOn(t, priced, sets[i], o)
			if !all.Relaxes(m) {
				t.Errorf("%s: all devices do not relax %q", o, sets[i])
			}
			if sets[i] != "" && m.Relaxes(all) {
				t.Errorf("%s: %q relaxes all devices", o, sets[i])
			}
		}
		for _, c := range []struct {
			a, b string
			want bool
		}{
			{"cpu0:4", "cpu0:4", true}, {"cpu0:4", "cpu0:2", true}, {"cpu0:4", "cpu0:1", true}, {"cpu0:2", "cpu0:4", false},
			{"cpu0:4,gpu0", "cpu0:4", true}, {"cpu0:4", "cpu0:4,gpu0", false}, {"cpu0:4,gpu0", "cpu0:4,gpu1", false},
			{"cpu0:8,cpu1:2,gpu0", "cpu0:8,cpu1:1,gpu0", true}, {"cpu0:1,gpu0", "gpu0", true}, {"gpu0", "cpu0:1,gpu0", false},
		} {
			if got := modelOn(t, priced, c.a, o).Relaxes(modelOn(t, priced, c.b, o)); got != c.want {
				t.Errorf("%s: %q relaxes %q: %v", o, c.a, c.b, got)
			}
		}
	}
}

// A model relaxes no other that lets a plan do something more, or do it for less.
func TestWhatIsNotRelaxed(t *testing.T) {
	priced := diamond(t, "server")
	m := modelOn(t, priced, "cpu0:4,gpu0", problem.Energy)
	for what, change := range map[string]func(o *Model){
		"time":           func(o *Model) { o.Tasks[2].Options[0].Nanos-- },
		"joules":         func(o *Model) { o.Tasks[2].Options[0].Nanojoules *= 1 - 1e-9 },
		"host power":     func(o *Model) { o.FloorWatts *= 1 - 1e-9 },
		"awake power":    func(o *Model) { o.Devices[0].AwakeWatts *= 0.9 },
		"units":          func(o *Model) { o.Devices[0].Units++ },
		"name":           func(o *Model) { o.Devices[1].Name = "gpu1" },
		"memory":         func(o *Model) { o.Devices[1].Memory = 0 },
		"option":         func(o *Model) { o.Tasks[1].Options = append(o.Tasks[1].Options, Option{Clock: 1, Nanos: 1e9}) },
		"no edge":        func(o *Model) { o.Edges = o.Edges[1:] },
		"bytes of edge":  func(o *Model) { o.Edges[0].Nanos = append([]int64{-1}, o.Edges[0].Nanos[1:]...) },
		"engines":        func(o *Model) { o.Memories[2].Engines++ },
		"joules of link": func(o *Model) { o.Memories[2].NanojoulesPerByte /= 2 },
		"steady":         func(o *Model) { o.Steady = false },
		"objective":      func(o *Model) { o.Objective = problem.Time },
	} {
		o := modelOn(t, priced, "cpu0:4,gpu0", problem.Energy)
		if !m.Relaxes(o) {
			t.Fatal("a model does not relax itself")
		}
		if change(o); m.Relaxes(o) {
			t.Errorf("%s: the other is taken for relaxed", what)
		}
	}
}

// One device, of which any number of units draws 3 W: work of 10 us takes at least 10 us, at any number. A
// certificate with one leaf covers both sets of the machine. It is refused where a leaf claims too much, is of
// another choice or graph, or is missing, or where the sets are not those of the space.
func TestCheck(t *testing.T) {
	b := dag.NewBuilder("one")
	b.Task(dag.Task{Name: "a", Op: "op", Costs: []dag.Cost{{Key: "*", Ns: 10_000}}})
	g := must.Get(b.Build())(t)
	p := testmachine.Shared(t, testmachine.CPU(2, 0, 3), testmachine.GPU("gpu", 0, 3))
	priced := must.Get(schedule.Price(&dag.Program{Name: "one", Graphs: []*dag.Graph{g}}, p, schedule.Unbound))(t)
	s := space.Of(priced, []string{"", "cpu:1", "cpu:2", "gpu"})
	proof := &Proof{Value: 20_000, Rows: []Multiplied{{Row{Family: Finish}, 1}, {Row{Family: Assign}, 10_000}}}
	leaf := func(set string) Leaf {
		return Leaf{Choice: space.Choice{Devices: set}, Graph: g.Hash(), Claims: []Claim{{problem.Time, 10_000, []*Proof{proof}}}}
	}
	for _, c := range []struct {
		what   string
		change func(c *Certificate)
		want   string
	}{
		{"one leaf for all", func(c *Certificate) {}, ""},
		{"a leaf for each", func(c *Certificate) {
			c.Leaves = []Leaf{leaf("gpu"), leaf("cpu:2"), leaf("cpu:1"), leaf("")}
		}, ""},
		{"a claim too high", func(c *Certificate) { c.Leaves[0].Claims[0].Bound = 10_001 }, "all devices: it claims that no plan takes less time than 10001, and proves 10000"},
		{"no leaf", func(c *Certificate) { c.Leaves = nil }, "all devices: no leaf bounds all of these plans"},
		{"leaves of some", func(c *Certificate) { c.Leaves = []Leaf{leaf("gpu"), leaf("cpu:2")} }, "all devices: no leaf bounds all of these plans"},
		{"an unknown set", func(c *Certificate) { c.Leaves[0].Devices = "tpu" }, `has no device or kind "tpu"`},
		{"another graph", func(c *Certificate) { c.Leaves[0].Graph = "0123" }, "its leaf is of a graph with hash 0123"},
		{"the same graph by another name", func(c *Certificate) { c.Leaves[0].Tiles = tiling.InParts(2, dag.AlongSamples) }, ""},
		{"fewer sets", func(c *Certificate) { c.Devices = c.Devices[1:] }, "it covers the devices"},
		{"another objective", func(c *Certificate) { c.Objective = "energy" }, `want a proof of "energy"`},
		{"no known objective", func(c *Certificate) { c.Objective = "money" }, `not of "money"`},
	} {
		k := &Certificate{Objective: "time", Devices: s.Devices, Tiles: s.Tiles, Leaves: []Leaf{leaf("")}}
		c.change(k)
		if err := k.Check(s); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.what, err, c.want)
		}
	}
}
