package best

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/plan/certificate"
	"dahl/plan/problem"
	"dahl/platform"
	"dahl/schedule"
	"dahl/simulate"
)

// nodes are equal nodes at one switch, each with a core and an adaptor.
func nodes(t *testing.T, count int, bytesPerSec string) *platform.Platform {
	t.Helper()
	const box = "name = \"box\"\nmemory = [{ name = \"ram\" }]\ndevice = [{ name = \"cpu\", kind = \"cpu\", memory = \"ram\", power = { idle = \"1 W\", busy = \"5 W\", source = \"guess\" } }]\n"
	text := fmt.Sprintf("node = [{ name = \"n\", platform = \"box\", count = %d }]\nswitch = [{ name = \"sw\" }]\n"+
		"link = [{ name = \"nic\", from = \"n\", to = \"sw\", bandwidth = %q, sharing = \"duplex\" }]\n", count, bytesPerSec)
	return must.Get(platform.ParseWith([]byte(text), "nodes.toml", func(string) ([]byte, error) { return []byte(box), nil }))(t)
}

// readings is a graph in which each task writes a buffer, of which steps use three in turn, and reads those of others.
func readings(t *testing.T, nanos, bytes []int, reads [][]int) *dag.Graph {
	t.Helper()
	b := dag.NewBuilder("readings")
	var written []dag.BufferID
	for i := range nanos {
		out := b.Buffer(dag.Buffer{Name: fmt.Sprint("x", i), Shape: []int{bytes[i]}, Type: dag.Uint8, Versions: 3, ViewOf: dag.None})
		written = append(written, out)
		task := dag.Task{Name: fmt.Sprint("t", i), Op: "op", Costs: []dag.Cost{{Key: "cpu", Ns: int64(nanos[i])}}}
		for _, of := range reads[i] {
			task.Accesses = append(task.Accesses, dag.Access{Region: dag.Region{Buffer: written[of]}, Mode: dag.Read})
		}
		task.Accesses = append(task.Accesses, dag.Access{Region: dag.Region{Buffer: out}, Mode: dag.Write})
		b.Task(task)
	}
	return must.Get(b.Build())(t)
}

func priced(t *testing.T, g *dag.Graph, p *platform.Platform) *schedule.Priced {
	t.Helper()
	return must.Get(schedule.Price(&dag.Program{Name: g.Name, Graphs: []*dag.Graph{g}}, p, schedule.Unbound))(t)
}

// Bounds of what cannot leave a node, by hand. Nodes have one core and 10 bytes per ns in and out.
func TestTiedByHand(t *testing.T) {
	for _, c := range []struct {
		words        string
		nodes        int
		nanos, bytes []int
		reads        [][]int
		want         int64
	}{
		// The example of tied.go: below 40 ns all three are on one node for 75.
		{"two read 400 bytes of one", 2, []int{30, 20, 25}, []int{400, 1, 1}, [][]int{{}, {0}, {0}}, 39},
		// A link that takes 90 ns never pays: one node takes 75, and no length below is left.
		{"two read 900 bytes of one", 2, []int{30, 20, 25}, []int{900, 1, 1}, [][]int{{}, {0}, {0}}, 74},
		// Two pairs, each of 60 ns, of which the data take 90: a node for each.
		{"two pairs", 2, []int{30, 30, 30, 30}, []int{900, 900, 1, 1}, [][]int{{}, {}, {0}, {1}}, 59},
		// Below 30 ns all three are on one node for 60. In longer steps each has a node.
		{"a chain", 3, []int{20, 20, 20}, []int{300, 300, 1}, [][]int{{}, {0}, {1}}, 29},
		// Below 90 ns the first three are a group, for 30 ns. What the fourth, of 30 ns, reads of both last ones takes 20 each, so that it is tied to
		// the group below 40.
		{"a group sends two buffers", 2, []int{10, 10, 10, 30}, []int{900, 200, 200, 1}, [][]int{{}, {0}, {0}, {1, 2}}, 39},
	} {
		m := must.Get(certificate.NewModel(priced(t, readings(t, c.nanos, c.bytes, c.reads), nodes(t, c.nodes, "10 GB/s")), problem.Time, false))(t)
		f, err := m.Form(&certificate.Row{Family: certificate.Tied})
		if err != nil || int64(f.Least) != c.want {
			t.Errorf("%s: %v, %v, want %d", c.words, f.Least, err, c.want)
		}
	}
}

// No plan of small graphs on two or three nodes takes less, wherever its tasks run: all places are tried, with the tasks of each in the order of the graph.
func TestNoPlanBeatsTies(t *testing.T) {
	near := 0
	const cases = 60
	for seed := range uint64(cases) {
		r := rand.New(rand.NewPCG(seed, 36))
		count, tasks := 2+r.IntN(2), 3+r.IntN(3)
		nanos, bytes, reads := make([]int, tasks), make([]int, tasks), make([][]int, tasks)
		for i := range tasks {
			nanos[i], bytes[i] = 1+r.IntN(50), 1+r.IntN(400)
			for of := range i {
				if r.IntN(2) == 0 {
					reads[i] = append(reads[i], of)
				}
			}
		}
		p := nodes(t, count, fmt.Sprint(1+r.IntN(9), " GB/s"))
		c := priced(t, readings(t, nanos, bytes, reads), p)
		for _, steps := range []int{1, 6} {
			m := must.Get(certificate.NewModel(c, problem.Time, steps > 1))(t)
			bound := must.Get(m.Form(&certificate.Row{Family: certificate.Tied}))(t).Least
			least := leastOfPlaces(t, c, count, steps)
			if least < bound {
				t.Errorf("seed %d, %d steps: a step takes %g, the bound is %g", seed, steps, least, bound)
			}
			if least < 1.1*bound {
				near++
			}
		}
	}
	if near < cases/10 {
		t.Errorf("%d of %d bounds are near the best plan", near, 2*cases)
	}
}

// leastOfPlaces is the least time of a step among all ways to place tasks on nodes: of one step, or the mean of the later half of several.
func leastOfPlaces(t *testing.T, c *schedule.Priced, count, steps int) float64 {
	t.Helper()
	g, least := c.Program.Graphs[0], 1e18
	place := make([]int, len(g.Tasks))
	for {
		plan := &schedule.Plan{GraphHash: g.Hash(), Order: make([][]dag.TaskID, count)}
		for task, at := range place {
			plan.Order[at] = append(plan.Order[at], dag.TaskID(task))
		}
		d := must.Get(c.Decide(schedule.Choice{Plans: []*schedule.Plan{plan}}))(t)
		span := func(steps int) time.Duration {
			return must.Get(simulate.Run(t.Context(), d, 0, steps, simulate.Options{}))(t).Makespan
		}
		if steps == 1 {
			least = min(least, float64(span(1)))
		} else {
			least = min(least, float64(span(4*steps)-span(2*steps))/float64(2*steps))
		}
		k := slices.IndexFunc(place, func(at int) bool { return at < count-1 })
		if k < 0 {
			return least
		}
		place[k]++
		clear(place[:k])
	}
}
