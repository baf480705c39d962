package dag

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"dahl/must"
)

// reduction of n contributors into g of shape 3×7 with accs accumulators, each
// reading one row of x (n×7), then a reader.
func reduceGraph(t *testing.T, n, accs int, box Box) *Graph {
	t.Helper()
	b := NewBuilder("reduce")
	x := b.Buffer(Buffer{Name: "x", Shape: []int{n, 7}, Type: Float64})
	g := b.Buffer(Buffer{Name: "g", Shape: []int{3, 7}, Type: Float64, Role: Gradient, Accumulators: accs})
	for i := range n {
		b.Task(Task{Name: fmt.Sprintf("c%d", i), Labels: Labels{Layer: "fc", Phase: "backward"}, Accesses: []Access{
			{Region{g, box}, Reduce},
			{Region{x, Box{{i, i + 1}, {0, 7}}}, Read},
		}})
	}
	b.Task(Task{Name: "use", Accesses: []Access{{Region{g, nil}, Read}}})
	return must.Get(b.Build())(t)
}

// symbols runs a graph with strings for numbers: a contributor adds its name, an
// add task its source in parentheses. It returns what the reader of g sees.
func symbols(t *testing.T, g *Graph) string {
	t.Helper()
	value := map[BufferID]string{}
	for i := range g.Tasks {
		task := &g.Tasks[i]
		dst := task.Accesses[0]
		term := task.Name
		switch {
		case task.Name == "use":
			return value[dst.Buffer]
		case task.Op == "add":
			term = "(" + value[task.Accesses[1].Buffer] + ")"
		}
		switch dst.Mode {
		case Write:
			value[dst.Buffer] = term
		case ReadWrite:
			if value[dst.Buffer] == "" {
				t.Fatalf("task %q adds to %q, which nothing wrote", task.Name, g.Buffers[dst.Buffer].Name)
			}
			value[dst.Buffer] += "+" + term
		default:
			t.Fatalf("task %q has mode %v", task.Name, dst.Mode)
		}
	}
	t.Fatal("nobody uses the sum")
	return ""
}

func TestExpandOrderOfSums(t *testing.T) {
	// Blocks are [ceil(jn/k), ceil((j+1)n/k)): for n=5 and k=2 three and two; for
	// n=5 and k=3, [0,2) [2,4) [4,5). The tree adds 1 to 0 and 3 to 2, then 2 to
	// 0, then 4 to 0.
	for _, c := range []struct {
		n, accs int
		want    string
	}{
		{1, 4, "c0"},
		{3, 0, "c0+c1+c2"},
		{3, 1, "c0+c1+c2"},
		{5, 2, "c0+c1+c2+(c3+c4)"},
		{5, 3, "c0+c1+(c2+c3)+(c4)"},
		{4, 4, "c0+(c1)+(c2+(c3))"},
		{5, 7, "c0+(c1)+(c2+(c3))+(c4)"},
		{7, 5, "c0+c1+(c2)+(c3+c4+(c5))+(c6)"},
	} {
		g := must.Get(Expand(reduceGraph(t, c.n, c.accs, nil)))(t)
		if got := symbols(t, g); got != c.want {
			t.Errorf("%d contributors, %d accumulators: %s, want %s", c.n, c.accs, got, c.want)
		}
	}
}

func TestExpandMergeTasks(t *testing.T) {
	g := must.Get(Expand(reduceGraph(t, 5, 3, Box{{0, 2}, {0, 7}})))(t)
	var names []string
	for _, task := range g.Tasks {
		names = append(names, task.Name)
	}
	want := []string{"c0", "c1", "c2", "c3", "c4", "g.merge[0:2,:].0+1", "g.merge[0:2,:].0+2", "use"}
	if !slices.Equal(names, want) {
		t.Fatalf("tasks %q, want %q", names, want)
	}
	// 2×7 elements of 8 bytes: 14 additions, 3·112 bytes.
	m := g.Tasks[5]
	if m.Op != "add" || m.Flops != 14 || m.MovedBytes != 336 || m.Shape != "2x7+;2x7" || m.Type != Float64 {
		t.Errorf("merge task %+v", m)
	}
	if m.Labels != (Labels{Layer: "fc", Phase: "reduce"}) {
		t.Errorf("labels %+v", m.Labels)
	}
	if acc, ok := g.BufferByName("g.acc2"); !ok || g.Buffers[acc].Role != Workspace || !slices.Equal(g.Buffers[acc].Shape, []int{3, 7}) {
		t.Error("g.acc2 is not a workspace of g's shape")
	}
	// The blocks {c0,c1}, {c2,c3}, {c4} do not wait for each other.
	for _, c := range []struct {
		task string
		want []string
	}{
		{"c1", []string{"c0"}}, {"c2", nil}, {"c3", []string{"c2"}}, {"c4", nil},
		{"g.merge[0:2,:].0+1", []string{"c1", "c3"}},
		{"g.merge[0:2,:].0+2", []string{"c4", "g.merge[0:2,:].0+1"}},
		{"use", []string{"g.merge[0:2,:].0+2"}},
	} {
		if got := predNames(g, c.task); !slices.Equal(got, c.want) {
			t.Errorf("%s follows %q, want %q", c.task, got, c.want)
		}
	}
}

func predNames(g *Graph, task string) []string {
	id, _ := g.TaskByName(task)
	var names []string
	for _, p := range g.Preds(id) {
		names = append(names, g.Tasks[p].Name)
	}
	return names
}

func TestExpandTwoRegionsOfOneTask(t *testing.T) {
	// dw has two accumulators and db one, given by the same tasks; a view of dw is
	// reduced through another shape. After must name the same tasks as before.
	b := NewBuilder("pair")
	dw := b.Buffer(Buffer{Name: "dw", Shape: []int{2, 3}, Type: Float32, Accumulators: 2})
	flat := b.View("flat", dw, 6)
	db := b.Buffer(Buffer{Name: "db", Shape: []int{2}, Type: Float32})
	b.Task(Task{Name: "a", Shape: "2x3;2", MovedBytes: 64, Accesses: []Access{{Region{dw, nil}, Reduce}, {Region{db, nil}, Reduce}}})
	b.Task(Task{Name: "b", Accesses: []Access{{Region{flat, nil}, Reduce}, {Region{db, nil}, Reduce}}})
	b.Task(Task{Name: "end", After: []TaskID{1}})
	g := must.Get(b.Build())(t)
	g = must.Get(Expand(g))(t)
	// a wrote dw and db (24 and 8 bytes), which it was said to read as well.
	want := `graph pair
buffer dw float32 [2,3] activation
view flat dw [6]
buffer db float32 [2] activation
buffer dw.acc1 float32 [2,3] workspace
view flat.acc1 dw.acc1 [6]

task a shape=2x3;2
  write dw
  write db
  work bytes=32
task b
  write flat.acc1
  readwrite db
task dw.merge.0+1 op=add type=float32 shape=2x3+;2x3
  readwrite dw
  read dw.acc1
  work flops=6 bytes=72
  labels phase=reduce
task end
  after b
`
	if got := text(t, g); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if again, err := Expand(g); err != nil || again != g {
		t.Error("a graph without Reduce is not returned as it is")
	}
}

func text(t *testing.T, g *Graph) string {
	t.Helper()
	var s strings.Builder
	must.Do(t, g.WriteText(&s))
	return s.String()
}

func TestExpandRefuses(t *testing.T) {
	lower, upper, most := Box{{0, 2}, {0, 3}}, Box{{2, 5}, {0, 3}}, Box{{0, 3}, {0, 3}}
	for _, c := range []struct {
		what  string
		modes []Mode
		boxes []Box
		want  string // "": accepted
	}{
		{"disjoint", []Mode{Reduce, Reduce, Reduce}, []Box{lower, upper, lower}, ""},
		{"read of another tile between", []Mode{Reduce, Read, Reduce, Reduce}, []Box{lower, upper, lower, lower}, ""},
		{"update after", []Mode{Reduce, Reduce, ReadWrite, Write}, []Box{lower, lower, most, most}, ""},
		{"read before", []Mode{Read, Reduce}, []Box{upper, upper}, `task "t0" has read access to g[2:5,:] before its last contributor, task "t1"`},
		{"read between", []Mode{Reduce, Read, Reduce}, []Box{lower, most, lower}, `task "t1" has read access to g[0:2,:] before its last contributor, task "t2"`},
		{"write before", []Mode{Write, Reduce}, []Box{nil, lower}, `task "t0" has write access to g[0:2,:]`},
		{"overlap", []Mode{Reduce, Reduce}, []Box{lower, most}, `tasks "t0" and "t1" reduce into g[0:2,:] and g[0:3,:]`},
		{"inside", []Mode{Reduce, Reduce}, []Box{most, lower}, `tasks "t0" and "t1" reduce into g[0:3,:] and g[0:2,:]`},
		{"straddling", []Mode{Reduce, Reduce}, []Box{upper, most}, `tasks "t0" and "t1" reduce into g[2:5,:] and g[0:3,:]`},
	} {
		b := NewBuilder("refuse")
		g := b.Buffer(Buffer{Name: "g", Shape: []int{5, 3}, Type: Float32, Accumulators: 2})
		for i, m := range c.modes {
			b.Task(Task{Name: fmt.Sprintf("t%d", i), Accesses: []Access{{Region{g, c.boxes[i]}, m}}})
		}
		graph := must.Get(b.Build())(t)
		_, err := Expand(graph)
		if c.want == "" && err != nil {
			t.Errorf("%s: %v", c.what, err)
		}
		if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: error %v, want %q", c.what, err, c.want)
		}
	}
}

func TestExpandAccumulatorNameTaken(t *testing.T) {
	b := NewBuilder("taken")
	g := b.Buffer(Buffer{Name: "g", Shape: []int{5}, Type: Float32, Accumulators: 2})
	b.Buffer(Buffer{Name: "g.acc1", Shape: []int{5}, Type: Float32})
	for i := range 2 {
		b.Task(Task{Name: fmt.Sprintf("t%d", i), Accesses: []Access{{Region{g, nil}, Reduce}}})
	}
	graph := must.Get(b.Build())(t)
	if _, err := Expand(graph); err == nil || !strings.Contains(err.Error(), `"g.acc1" has the name`) {
		t.Errorf("error %v", err)
	}
}

// TestExpandRandomTiles reduces into random tiles in random order with random
// numbers of accumulators, and adds up tokens: in the end each tile holds each of
// its contributors once, whatever another tile does.
func TestExpandRandomTiles(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 5))
		accs := rng.IntN(6)
		boxes := tiles(11, 1+rng.IntN(11))
		b := NewBuilder("tiles")
		g := b.Buffer(Buffer{Name: "g", Shape: []int{11, 3}, Type: Float32, Accumulators: accs})
		want := make([]map[string]int, len(boxes))
		for i := range want {
			want[i] = map[string]int{}
		}
		for i := range 1 + rng.IntN(40) {
			k, name := rng.IntN(len(boxes)), fmt.Sprint("c", i)
			b.Task(Task{Name: name, Accesses: []Access{{Region{g, Box{boxes[k], {0, 3}}}, Reduce}}})
			want[k][name]++
		}
		before := must.Get(b.Build())(t)
		after := must.Get(Expand(before))(t)
		must.Do(t, after.Check())
		for k, r := range boxes {
			if got := tokens(after, r, 0); !maps.Equal(got, want[k]) {
				t.Fatalf("seed %d: tile %v holds %v, want %v", seed, r, got, want[k])
			}
			chains := 0 // a Write starts each
			for _, task := range after.Tasks {
				if a := task.Accesses[0]; a.Box[0] == r && a.Mode == Write {
					chains++
				}
			}
			if n := len(want[k]); chains != min(max(accs, 1), n) {
				t.Fatalf("seed %d: %d contributors in %d chains, %d accumulators", seed, n, chains, accs)
			}
		}
	}
}

// tokens runs the tasks of one tile and returns what is in a buffer's in the end.
func tokens(g *Graph, tile Range, buffer BufferID) map[string]int {
	sums := map[BufferID]map[string]int{}
	for _, task := range g.Tasks {
		dst := task.Accesses[0]
		if dst.Box[0] != tile {
			continue
		}
		if dst.Mode == Write || sums[dst.Buffer] == nil {
			sums[dst.Buffer] = map[string]int{}
		}
		add := map[string]int{task.Name: 1}
		if task.Op == "add" {
			add = sums[task.Accesses[1].Buffer]
		}
		for name, n := range add {
			sums[dst.Buffer][name] += n
		}
	}
	if sums[buffer] == nil {
		return map[string]int{}
	}
	return sums[buffer]
}

// TestExpandCosts: merge tasks take the costs that the graph gives the operation
// add, as a graph file without models needs.
func TestExpandCosts(t *testing.T) {
	g := must.Get(Expand(parse(t, `graph g
buffer g float32 [7] gradient accumulators=2
costs add cpu=13
task a
  reduce g
  costs cpu=5
task b
  reduce g
  costs cpu=5
`)))(t)
	id, ok := g.TaskByName("g.merge.0+1")
	if !ok || !slices.Equal(g.Tasks[id].Costs, []Cost{{Key: "cpu", Ns: 13}}) {
		t.Errorf("merge task %v has costs %v", ok, g.Tasks[id].Costs)
	}
}
