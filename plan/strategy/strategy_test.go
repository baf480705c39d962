package strategy

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/exchange"
	"dahl/must"
	"dahl/platform"
	"dahl/schedule"
)

// workersOf is a machine with a core and some GPUs, each with a memory of its own, behind a link of 1 GB/s in each direction to the host's memory.
func workersOf(t testing.TB, n int, capacity string) *platform.Platform {
	t.Helper()
	var text strings.Builder
	text.WriteString("name = \"cluster\"\n[[memory]]\nname = \"ram\"\nhost = true\n[[device]]\nname = \"cpu\"\nkind = \"cpu\"\nmemory = \"ram\"\nspeed = { float32 = \"1 GF/s\" }\n")
	for i := range n {
		fmt.Fprintf(&text, "[[memory]]\nname = \"m%d\"\n%s[[device]]\nname = \"gpu%[1]d\"\nkind = \"cuda\"\nmemory = \"m%[1]d\"\nspeed = { float32 = \"1 GF/s\" }\n", i, capacity)
		fmt.Fprintf(&text, "[[link]]\nname = \"l%d\"\nbandwidth = \"1 GB/s\"\nsharing = \"duplex\"\n[[route]]\nfrom = \"ram\"\nto = \"m%[1]d\"\nlinks = [\"l%[1]d\"]\n", i)
	}
	return must.Get(platform.Parse([]byte(text.String()), "cluster.toml"))(t)
}

// imported reads a graph of testdata.
func imported(t testing.TB, file string, o exchange.Options) *dag.Graph {
	t.Helper()
	src := must.Get(os.ReadFile("testdata/" + file))(t)
	of := must.Get(exchange.FormatOf(file, src))(t)
	g, _ := must.Get2(of.Read(src, file, o))(t)
	return g
}

func priced(t testing.TB, g *dag.Graph, p *platform.Platform) *schedule.Priced {
	t.Helper()
	return must.Get(schedule.Price(&dag.Program{Name: g.Name, Graphs: []*dag.Graph{g}, Order: []dag.Segment{{Steps: 1}}}, p, schedule.Unbound))(t)
}

// TestPipeDream: the published stages of VGG-16 at 1 GB/s, with two and four workers.
func TestPipeDream(t *testing.T) {
	for _, c := range []struct {
		workers, minibatches int
		seconds              float64
		stages               []string
	}{
		{2, 1, 0.37093, []string{"node2 to node9 on gpu0", "node10 to node41 on gpu1"}},
		{4, 3, 0.17573, []string{"node2 to node16 on gpu0 gpu1 gpu2", "node17 to node41 on gpu3"}},
	} {
		g := imported(t, "vgg16.txt", exchange.Options{Stash: true, Minibatches: c.minibatches})
		problem := priced(t, g, workersOf(t, 4, "")).Problem(0, 1)
		s := must.Get(ByName(fmt.Sprintf("pipedream:%d", c.workers)))(t)
		model := must.Get(s.Model(problem))(t)
		if math.Abs(model.Seconds-c.seconds) > 5e-6 || len(model.Stages) != len(c.stages) {
			t.Errorf("%d workers: %v s in %d stages", c.workers, model.Seconds, len(model.Stages))
			continue
		}
		for i, want := range c.stages {
			if got := model.Stages[i].Name + " on " + strings.Join(model.Stages[i].On, " "); got != want {
				t.Errorf("%d workers: stage %q, want %q", c.workers, got, want)
			}
		}
	}
}

// TestPlacement: the published optimum of ResNet-50 on six accelerators and a core, in contiguous parts.
func TestPlacement(t *testing.T) {
	g := imported(t, "resnet50.json", exchange.Options{})
	problem := priced(t, g, workersOf(t, 6, "capacity = \"17185374208 B\"\n")).Problem(0, 1)
	s := must.Get(ByName("placement:6x1"))(t)
	model := must.Get(s.Model(problem))(t)
	if math.Abs(model.Seconds-0.0786318) > 5e-8 {
		t.Errorf("%v s", model.Seconds)
	}
}
