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
	"dahl/plan"
	"dahl/plan/pipeline"
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
	g := must.Get(of.Read(src, file, o))(t).Graph
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

// TestPlacementCountsWeightsOnce: three tasks use a weight of 700 bytes, which a memory of 1,100 bytes has room for. No memory of 500 bytes has.
func TestPlacementCountsWeightsOnce(t *testing.T) {
	g := must.Get(dag.ReadJSON(strings.NewReader(`{"format": "dahl-graph 1", "buffers": [{"name": "w", "bytes": 700, "role": "parameter"}, {"name": "x", "bytes": 11}, {"name": "g", "bytes": 13}],
 "tasks": [{"name": "forward", "labels": {"layer": "fc"}, "reads": ["w"], "writes": ["x"], "ns": {"cuda": 1000}}, {"name": "backward", "labels": {"layer": "fc"}, "reads": ["w", "x"], "writes": ["g"], "ns": {"cuda": 3000}},
 {"name": "update", "labels": {"layer": "fc"}, "reads": ["g"], "updates": ["w"], "ns": {"cuda": 2000}}]}`), "graph.json"))(t)
	for capacity, fits := range map[int]bool{1100: true, 500: false} {
		problem := priced(t, g, workersOf(t, 1, fmt.Sprintf("capacity = \"%d B\"\n", capacity))).Problem(0, 1)
		if model, err := must.Get(ByName("placement"))(t).Model(problem); (err == nil) != fits {
			t.Errorf("%d bytes: %v, %v", capacity, model, err)
		}
	}
}

// simulated is the steady step of a strategy's plan.
func simulated(t testing.TB, g *dag.Graph, p *platform.Platform, name string) float64 {
	t.Helper()
	priced := priced(t, g, p)
	made := must.Get(must.Get(ByName(name))(t).Plan(priced.Problem(0, 1)))(t)
	found := must.Get(pipeline.Search(t.Context(), priced, []*schedule.Plan{made}, pipeline.Options{Steps: 30, Evaluator: &plan.Evaluator{}}))(t)
	return found.Step.Time.Seconds()
}

// TestSimulated: the contiguous parts of ResNet-50 run as a pipeline that is as fast as the formula, since transfers overlap with computing. The stages of
// VGG-16 are not: the output of node9, 822,083,584 bytes, and its gradient take 0.822 s on links of 1 GB/s, each in its direction, and no less.
func TestSimulated(t *testing.T) {
	if seconds := simulated(t, imported(t, "resnet50.json", exchange.Options{}), workersOf(t, 6, "capacity = \"17185374208 B\"\n"), "placement"); seconds > 0.0786318 || seconds < 0.077 {
		t.Errorf("ResNet-50 takes %v s per step", seconds)
	}
	if seconds := simulated(t, imported(t, "vgg16.txt", exchange.Options{Stash: true}), workersOf(t, 2, ""), "pipedream:2"); math.Abs(seconds-0.822) > 0.004 {
		t.Errorf("VGG-16 takes %v s per step", seconds)
	}
}

// TestNames: a strategy is named with all of its numbers or none.
func TestNames(t *testing.T) {
	for _, name := range []string{"pipedream", "pipedream:2", "placement:4x1"} {
		if s, err := ByName(name); err != nil || s.Doc().Name != name {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, want := range map[string]string{
		"pipedrem":        "did you mean pipedream",
		"pipedream:x":     `strategy "pipedream:x": write pipedream or pipedream:WORKERS`,
		"pipedream:0":     "write pipedream or pipedream:WORKERS",
		"placement:4":     "write placement or placement:ACCELERATORSxCORES",
		"placement:4x1x2": "write placement or placement:ACCELERATORSxCORES",
	} {
		if _, err := ByName(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

// TestRefused: what a strategy cannot place is refused in a line.
func TestRefused(t *testing.T) {
	one, three := exchange.Options{Stash: true}, exchange.Options{Stash: true, Minibatches: 3}
	for _, c := range []struct {
		exchange.Options
		name, want string
	}{
		{one, "pipedream:4", "a stage has 3 replicas, among which a step of 1 mini-batches cannot be divided; import the profile with --minibatches 3"},
		{one, "pipedream:5", `5 workers are asked for, and "cluster" has 4 equal ones`},
		{three, "placement", "the cost model is of one mini-batch per step"},
		{one, "placement:5x1", "5 accelerators and 1 cores are asked for"},
	} {
		problem := priced(t, imported(t, "vgg16.txt", c.Options), workersOf(t, 4, "")).Problem(0, 1)
		if _, err := must.Get(ByName(c.name))(t).Plan(problem); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// TestOrphans: a backward task without a forward task follows the parts as its mirror, and parts in a circle are one. The sets of parts that contain
// all that their parts follow are {}, {a}, {a,x}, {a,b}, {a,b,x}: x lies behind a, since its gradient goes to a.
func TestOrphans(t *testing.T) {
	text := "graph g\nbuffer y uint8 [8] activation\nbuffer g uint8 [8] gradient\nbuffer h uint8 [8] gradient\n"
	for _, task := range []string{"a.f|write y|forward|a", "b.f|read y|forward|b", "x.b|write h|backward|x", "b.b|write g|backward|b", "a.b|read g#read h|backward|a"} {
		part := strings.Split(task, "|")
		text += fmt.Sprintf("task %s\n %s\n costs *=10\n labels phase=%s\n place colocate=%s\n", part[0], strings.ReplaceAll(part[1], "#", "\n "), part[2], part[3])
	}
	g := must.Get(dag.ParseText(strings.NewReader(text), "g"))(t)
	n := must.Get(newNetwork(priced(t, g, workersOf(t, 1, "")).Problem(0, 1)))(t)
	if ideals := must.Get(n.ideals())(t); len(ideals) != 5 || len(n.parts) != 3 {
		t.Errorf("%d ideals of %d parts", len(ideals), len(n.parts))
	}
}
