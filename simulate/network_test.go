package simulate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/audit"
	"dahl/schedule/policy"
)

// cluster is nodes of one core and two GPUs each, by an adaptor of 6 B/s at one of so many leaf switches, and with more of its text.
func cluster(t testing.TB, nodes, leaves int, text string) *platform.Platform {
	t.Helper()
	const box = `name = "box"
memory = [{ name = "ram" }, { name = "a" }, { name = "b" }]
device = [{ name = "cpu", kind = "cpu", memory = "ram" }, { name = "gpu0", kind = "emulated", memory = "a" }, { name = "gpu1", kind = "emulated", memory = "b" }]
link = [{ name = "la", bandwidth = "40 B/s", sharing = "duplex" }, { name = "lb", bandwidth = "40 B/s", sharing = "duplex" }]
route = [{ from = "ram", to = "a", links = ["la"] }, { from = "ram", to = "b", links = ["lb"] }]
`
	src := fmt.Sprintf("node = [{ name = \"n\", platform = \"box\", count = %d }]\n", nodes) + text +
		fmt.Sprintf("[[switch]]\nname = \"leaf\"\ncount = %d\n[[link]]\nname = \"nic\"\nfrom = \"n\"\nto = \"leaf\"\nbandwidth = \"6 B/s\"\nsharing = \"duplex\"\n", leaves)
	return must.Get(platform.ParseWith([]byte(src), "cluster.toml", func(string) ([]byte, error) { return []byte(box), nil }))(t)
}

// Rates derived by hand, as the time that 12 bytes take.
func TestNetworkFlows(t *testing.T) {
	spines := func(n int) string {
		return fmt.Sprintf("[[switch]]\nname = \"s\"\ncount = %d\n[[link]]\nname = \"up\"\nfrom = \"leaf\"\nto = \"s\"\njoins = \"each\"\nbandwidth = \"6 B/s\"\nsharing = \"duplex\"\n", n)
	}
	const torus = "[[link]]\nname = \"to\"\nfrom = \"leaf\"\nto = \"leaf\"\njoins = \"torus\"\nshape = [4, 3]\nbandwidth = \"6 B/s\"\nsharing = \"duplex\"\n"
	fabric := func(p *platform.Platform) *platform.Platform { // the switch carries 6 B/s in all
		p.Links[len(p.Links)-1].Sharing, p.Links[len(p.Links)-1].BandwidthBytesPerSec = platform.Shared, 6
		must.Do(t, p.Complete())
		return p
	}
	for _, c := range []struct {
		words string
		p     *platform.Platform
		flows string
		want  []time.Duration
	}{
		{"two flows through one switch into different nodes: each has its adaptors for itself, 6 B/s", cluster(t, 4, 1, ""), "n0.ram>n1.ram n2.ram>n3.ram", []time.Duration{2 * second, 2 * second}},
		{"into one node: its adaptor is shared, 3 B/s", cluster(t, 4, 1, ""), "n0.ram>n2.ram n1.ram>n2.ram", []time.Duration{4 * second, 4 * second}},
		{"out of a node and into it: the adaptor is duplex", cluster(t, 4, 1, ""), "n0.ram>n1.ram n2.ram>n0.ram", []time.Duration{2 * second, 2 * second}},
		{"a switch of 6 B/s in all: 3 B/s each", fabric(cluster(t, 4, 1, "")), "n0.ram>n1.ram n2.ram>n3.ram", []time.Duration{4 * second, 4 * second}},
		{"two GPUs of a node: its adaptor limits both, 3 B/s, and not their links of 40 B/s", cluster(t, 2, 1, ""), "n0.a>n1.a n0.b>n1.b", []time.Duration{4 * second, 4 * second}},
		{"an uplink shared by three nodes: 2 B/s each", cluster(t, 6, 2, spines(1)), "n0.ram>n3.ram n1.ram>n4.ram n2.ram>n5.ram", []time.Duration{6 * second, 6 * second, 6 * second}},
		{"two uplinks shared by three nodes: even destinations have the first, odd ones the second", cluster(t, 6, 2, spines(2)), "n0.ram>n3.ram n1.ram>n4.ram n2.ram>n5.ram", []time.Duration{4 * second, 2 * second, 4 * second}},
		{"a flow below the leaf switch is not slowed by its uplink", cluster(t, 6, 2, spines(1)), "n0.ram>n3.ram n1.ram>n4.ram n4.ram>n5.ram", []time.Duration{4 * second, 4 * second, 2 * second}},
		// Node 4y + x is at (x, y), and x comes first: n0 to n7 goes 0 3 7, and n3 to n11 goes 3 11. They share no link; n0 to n3 and n0 to n7
		// share that from 0 to 3 and the adaptor of n0, and n8 to n7 by 8 11 7 shares the adaptor of n7.
		{"a torus", cluster(t, 12, 12, torus), "n0.ram>n7.ram n3.ram>n11.ram", []time.Duration{2 * second, 2 * second}},
		{"a torus with a shared link", cluster(t, 12, 12, torus), "n0.ram>n3.ram n0.ram>n7.ram", []time.Duration{4 * second, 4 * second}},
		{"a torus with a shared adaptor", cluster(t, 12, 12, torus), "n0.ram>n7.ram n8.ram>n7.ram", []time.Duration{4 * second, 4 * second}},
	} {
		var flows []testFlow
		for _, flow := range strings.Fields(c.flows) {
			a, b, _ := strings.Cut(flow, ">")
			from, _ := c.p.MemoryByName(a)
			to, ok := c.p.MemoryByName(b)
			if !ok {
				t.Fatalf("no memory %q", b)
			}
			flows = append(flows, testFlow{0, from, to, 12})
		}
		if got := endsOf(c.p, flows); !slices.Equal(got, c.want) {
			t.Errorf("%s: the flows end at %v, want %v", c.words, got, c.want)
		}
	}
}

// Random graphs, placed at random on clusters whose memories fill a set of one word, of two and of four: the schedule stands up to
// [audit.Check], which knows no sets. What no task has written comes from the host memory of the reader's node.
func TestRandomGraphsOnClusters(t *testing.T) {
	for seed, nodes := range []int{2, 5, 21, 22, 43, 71} { // 6 to 213 memories: 63, 66 and 129 are around the ends of words
		p := cluster(t, nodes, 1, "")
		for i := range p.Devices {
			p.Devices[i].PowerSource = platform.Guess
		}
		for i := range p.Memories {
			p.Memories[i].BandwidthBytesPerSec = 1e9
		}
		for i := range p.Links {
			p.Links[i].BandwidthBytesPerSec, p.Links[i].PowerSource = 1e9*p.Links[i].BandwidthBytesPerSec, platform.Guess
		}
		p = withEngines(t, p, 1)
		r := rand.New(rand.NewPCG(uint64(seed), 36))
		for range 6 {
			tasks := randomGraph(r, p)
			for i := range tasks.tasks {
				if at := tasks.tasks[i].Placement; at != nil && at.Colocate != "" {
					tasks.tasks[i].Placement = nil
				}
			}
			q := problem(t, tasks.build(t, inOrder(len(tasks.tasks))), p, 1+r.IntN(4))
			plan := randomPlan(r, q)
			d := mustDecide(t, q, plan)
			got := must.Get(Run(t.Context(), d, 0, q.Steps, Options{}))(t)
			if err := audit.Check(got, d.Problem(0, q.Steps, false)); err != nil {
				t.Fatalf("%d nodes: %v", nodes, err)
			}
			for _, m := range d.Placed.Graphs[0].Enter {
				if home := q.Graph.Buffers[m.Buffer].Home; m.Writer < 0 && p.NodeOf(m.From) != p.NodeOf(m.To) && (home == "" || home == "host") {
					t.Fatalf("%d nodes: %s crosses the network before anything has written it", nodes, q.Graph.Buffers[m.Buffer].Name)
				}
			}
		}
	}
}

// randomPlan places each task on a random worker that can run it.
func randomPlan(r *rand.Rand, p *schedule.Problem) *schedule.Plan {
	plan := &schedule.Plan{Policy: "random", Order: make([][]dag.TaskID, len(p.Platform.Workers))}
	for t := range p.Graph.Tasks {
		var can []int
		for w := range p.Platform.Workers {
			d := &p.Platform.Devices[p.Platform.Workers[w].Device]
			placed := p.Graph.Tasks[t].Placement
			if _, ok := p.Costs.Of(dag.TaskID(t), p.Platform.Workers[w].Device); ok && (placed == nil || placed.Device == "" || placed.Device == d.Kind) {
				can = append(can, w)
			}
		}
		w := can[r.IntN(len(can))]
		plan.Order[w] = append(plan.Order[w], dag.TaskID(t))
	}
	return plan
}

// Bounds of what crosses the network, derived by hand for placed tasks of which each writes 12 bytes, over wires of 6 B/s. The schedule of HEFT takes no less.
func TestBoundsOfNetworks(t *testing.T) {
	const uplink = "[[switch]]\nname = \"s\"\n[[link]]\nname = \"up\"\nfrom = \"leaf\"\nto = \"s\"\njoins = \"each\"\nbandwidth = \"6 B/s\"\nsharing = \"duplex\"\n"
	for _, c := range []struct {
		words string
		p     *platform.Platform
		moves string // from the node of one that writes to the node of one that reads
		want  time.Duration
	}{
		{"three nodes send to a fourth: 36 B over its adaptor", cluster(t, 4, 1, ""), "1>0 2>0 3>0", 6 * time.Second},
		{"one sends the same to three: 12 B out, and into each", cluster(t, 4, 1, ""), "0>1,2,3", 2 * time.Second},
		{"a ring: each adaptor has 12 B in and 12 B out", cluster(t, 4, 1, ""), "0>1 1>2 2>3 3>0", 2 * time.Second},
		{"three nodes below one uplink: 36 B over it", cluster(t, 6, 2, uplink), "0>3 1>4 2>5", 6 * time.Second},
		{"the same within leaves: no uplink", cluster(t, 6, 2, uplink), "0>1 1>2 3>4 4>5", 2 * time.Second},
	} {
		b := dag.NewBuilder("moves")
		for i, move := range strings.Fields(c.moves) {
			from, readers, _ := strings.Cut(move, ">")
			x := b.Buffer(dag.Buffer{Name: fmt.Sprint("x", i), Shape: []int{3}, Type: dag.Float32, Role: dag.Activation})
			task := func(name, node string, mode dag.Mode) {
				device := "n" + node + ".cpu"
				b.Task(dag.Task{Name: fmt.Sprint(name, i), Op: "op", Costs: []dag.Cost{{Key: device, Ns: 1}}, Placement: &dag.Placement{Device: device},
					Accesses: []dag.Access{{Region: dag.Region{Buffer: x}, Mode: mode}}})
			}
			task("w", from, dag.Write)
			for to := range strings.SplitSeq(readers, ",") {
				task("r"+to+".", to, dag.Read)
			}
		}
		g := must.Get(b.Build())(t)
		priced := must.Get(schedule.Price(&dag.Program{Name: "p", Graphs: []*dag.Graph{g}}, c.p, schedule.Unbound))(t)
		s := must.Get(Run(t.Context(), must.Get(priced.Decide(schedule.Choice{Policy: policy.HEFT}))(t), 0, 1, Options{}))(t)
		if got := priced.LowerBound(0, 1); got.Round(time.Microsecond) != c.want || s.Makespan < got {
			t.Errorf("%s: the bound is %v, want %v; the schedule takes %v", c.words, got, c.want, s.Makespan)
		}
	}
}

// The models of a node are those of its class in bounds, too: 3 ns as measured, where the speed says 70.
func TestBoundByModelsOfNodes(t *testing.T) {
	const box = `name = "box"
memory = [{ name = "ram" }]
device = [{ name = "cpu", kind = "cpu", memory = "ram", speed = { float32 = "1 GF/s" } }]
model = [{ op = "relu", type = "float32", device = "cpu", shape = "7", median = "3 ns", count = 5 }]
`
	const two = "node = [{ name = \"n\", platform = \"box\", count = 2 }]\nlink = [{ name = \"net\", from = \"n0\", to = \"n1\", bandwidth = \"1 GB/s\" }]\n"
	p := must.Get(platform.ParseWith([]byte(two), "two.toml", func(string) ([]byte, error) { return []byte(box), nil }))(t)
	b := dag.NewBuilder("one")
	b.Task(dag.Task{Name: "t", Op: "relu", Shape: "7", Type: dag.Float32, Flops: 70})
	g := must.Get(b.Build())(t)
	priced := must.Get(schedule.Price(&dag.Program{Name: "p", Graphs: []*dag.Graph{g}}, p, schedule.Unbound))(t)
	if got := priced.LowerBound(0, 1); got != 3 {
		t.Errorf("the bound is %d, want 3", got)
	}
}

// Random graphs with each task bound to a random device of a cluster take no less than the bound. Slow wires let cuts decide most bounds.
func TestNoClusterBeatsTheBound(t *testing.T) {
	cuts := 0
	const cases = 60
	for seed := range uint64(cases) {
		r := rand.New(rand.NewPCG(seed, 363))
		p := cluster(t, 2+r.IntN(5), 1, "")
		for i := range p.Devices {
			p.Devices[i].PowerSource = platform.Guess
		}
		for i := range p.Links {
			l := &p.Links[i]
			if l.BandwidthBytesPerSec, l.PowerSource = float64(1+r.IntN(9))*1e8, platform.Guess; !l.Switch || r.IntN(2) == 0 {
				l.Sharing = platform.Sharing(r.IntN(3))
			}
		}
		must.Do(t, p.Complete())
		tasks := randomGraph(r, p)
		for i := range tasks.tasks {
			task := &tasks.tasks[i]
			task.Placement = &dag.Placement{Device: task.Costs[r.IntN(len(task.Costs))].Key}
		}
		g := tasks.build(t, inOrder(len(tasks.tasks)))
		priced := must.Get(schedule.Price(&dag.Program{Name: "p", Graphs: []*dag.Graph{g}}, p, schedule.Unbound))(t)
		steps := 1 + r.IntN(4)
		bound := priced.LowerBound(0, steps)
		if steps == 1 && bound == priced.CrossingTime(0, false) && bound > 0 {
			cuts++
		}
		for _, by := range policy.All() {
			d, err := priced.Decide(schedule.Choice{Policy: by})
			if err != nil {
				continue
			}
			if s := must.Get(Run(t.Context(), d, 0, steps, Options{}))(t); s.Makespan < bound {
				t.Fatalf("seed %d, %s: %d steps take %d, the bound is %d", seed, s.Policy, steps, s.Makespan, bound)
			}
		}
	}
	if cuts < cases/20 {
		t.Errorf("cuts decided %d bounds: the test tests little", cuts)
	}
}

// A node of a host of 30 W has two cores of 1 W idle and 11 W busy: with one busy 42 W, with both 52 W. Two tasks of a second take two where its cap lets
// only one run, and one on two nodes, each with its cap. No task can start below 42 W.
func TestCapsOfNodes(t *testing.T) {
	const box = `name = "box"
host_power = "30 W"
memory = [{ name = "ram" }]
device = [{ name = "cpu", kind = "cpu", count = 2, memory = "ram", power = { idle = "1 W", busy = "11 W" } }]
`
	for _, c := range []struct {
		watts, first, second string
		want                 time.Duration // 0: refused
	}{
		{"52 W", "n0.cpu.0", "n0.cpu.1", time.Second},
		{"51 W", "n0.cpu.0", "n0.cpu.1", 2 * time.Second},
		{"51 W", "n0.cpu.0", "n1.cpu.0", time.Second},
		{"42 W", "n0.cpu.0", "n1.cpu.0", time.Second},
		{"41 W", "n0.cpu.0", "n1.cpu.0", 0},
	} {
		text := fmt.Sprintf("node = [{ name = \"n\", platform = \"box\", count = 2, power_cap = %q }]\nlink = [{ name = \"net\", from = \"n0\", to = \"n1\", bandwidth = \"1 GB/s\" }]\n", c.watts)
		p := must.Get(platform.ParseWith([]byte(text), "two.toml", func(string) ([]byte, error) { return []byte(box), nil }))(t)
		b := dag.NewBuilder("two")
		for _, at := range []string{c.first, c.second} {
			device, _, _ := strings.Cut(at, ".cpu.")
			b.Task(dag.Task{Name: at, Op: "op", Costs: []dag.Cost{{Key: device + ".cpu", Ns: int64(time.Second)}}, Placement: &dag.Placement{Device: at}})
		}
		g := must.Get(b.Build())(t)
		priced := must.Get(schedule.Price(&dag.Program{Name: "p", Graphs: []*dag.Graph{g}}, p, schedule.Unbound))(t)
		s, err := Run(t.Context(), must.Get(priced.Decide(schedule.Choice{Policy: policy.HEFT}))(t), 0, 1, Options{})
		switch {
		case c.want == 0 && (err == nil || !strings.Contains(err.Error(), "cap")):
			t.Errorf("%s: %v", c.watts, err)
		case c.want > 0 && (err != nil || s.Makespan != c.want):
			t.Errorf("%s on %s and %s: %v, %v, want %v", c.watts, c.first, c.second, s, err, c.want)
		}
	}
}
