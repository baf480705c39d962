package dag

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"dahl/must"
)

func parse(t *testing.T, lines string) *Graph {
	t.Helper()
	return must.Get(ParseText(strings.NewReader(lines), "test"))(t)
}

// diamond: a feeds b and c, which feed d; e stands alone.
const diamond = `graph diamond
buffer x uint8 [2] activation
buffer y uint8 [3] activation
buffer z uint8 [5] activation
buffer w uint8 [11] parameter
buffer in uint8 [17] input
task a
  write x
  read in
  work flops=2 bytes=20
task b
  write y
  read x
  work flops=3 bytes=30
task c
  write z
  read x
  work flops=5 bytes=50
task d
  readwrite w
  read y
  read z
task e
`

func TestLevelsWidthTotals(t *testing.T) {
	g := parse(t, diamond)
	if got, want := g.Levels(), []int32{0, 1, 1, 2, 0}; !slices.Equal(got, want) {
		t.Errorf("levels %v, want %v", got, want)
	}
	// Two tasks on each of the levels 0 and 1. The antichain {b, c, e} has three:
	// Width is a lower bound.
	if got := g.Width(); got != 2 {
		t.Errorf("width %d, want 2", got)
	}
	if g.TotalFlops() != 2+3+5 || g.TotalBytes() != 20+30+50 {
		t.Errorf("%g flops, %d bytes", g.TotalFlops(), g.TotalBytes())
	}
	empty := parse(t, "graph empty")
	if length, path := empty.CriticalPath(nil); empty.Width() != 0 || length != 0 || path != nil {
		t.Error("an empty graph has width, or a path")
	}
}

func TestCriticalPath(t *testing.T) {
	g := parse(t, diamond)
	for _, c := range []struct {
		cost [5]time.Duration
		want time.Duration
		path []TaskID
	}{
		{[5]time.Duration{1, 7, 5, 2, 3}, 10, []TaskID{0, 1, 3}},
		{[5]time.Duration{1, 5, 7, 2, 3}, 10, []TaskID{0, 2, 3}},
		{[5]time.Duration{1, 5, 5, 2, 3}, 8, []TaskID{0, 1, 3}}, // b before c by name
		{[5]time.Duration{1, 5, 5, 2, 30}, 30, []TaskID{4}},
		{[5]time.Duration{}, 0, []TaskID{0}}, // all paths are equal, and a is the first name
	} {
		got, path := g.CriticalPath(func(id TaskID) time.Duration { return c.cost[id] })
		if got != c.want || !slices.Equal(path, c.path) {
			t.Errorf("costs %v: %v over %v, want %v over %v", c.cost, got, path, c.want, c.path)
		}
	}
}

// TestNoBarrier: in conv → ReLU → pool → flatten → dense, each layer with another
// split, a task depends on exactly those tiles of the layer before that hold
// samples it reads. Nothing waits for a whole tensor.
func TestNoBarrier(t *testing.T) {
	g := sampleGraph(t)
	// Sample tiles of 7: conv 2 (and filters in two), relu 3, pool 5, fc 4.
	for _, c := range []struct {
		task string
		want []string
	}{
		{"relu[0:3]", []string{"conv[0:2,0:3]", "conv[0:2,3:5]", "conv[2:4,0:3]", "conv[2:4,3:5]"}},
		{"relu[3:6]", []string{"conv[2:4,0:3]", "conv[2:4,3:5]", "conv[4:6,0:3]", "conv[4:6,3:5]"}},
		{"relu[6:7]", []string{"conv[6:7,0:3]", "conv[6:7,3:5]"}},
		{"pool[0:5]", []string{"relu[0:3]", "relu[3:6]"}},
		{"pool[5:7]", []string{"relu[3:6]", "relu[6:7]"}},
		{"fc[0:4]", []string{"pool[0:5]"}},
		{"fc[4:7]", []string{"pool[0:5]", "pool[5:7]"}},
	} {
		if got := predNames(g, c.task); !slices.Equal(got, c.want) {
			t.Errorf("%s waits for %q, want %q", c.task, got, c.want)
		}
	}
	for i := range g.Tasks {
		if g.Tasks[i].Op == "conv2d" && len(g.Preds(TaskID(i))) > 0 {
			t.Errorf("%s waits for %v in its own step", g.Tasks[i].Name, g.Preds(TaskID(i)))
		}
	}
}

func TestTaskByName(t *testing.T) {
	g := sampleGraph(t)
	for i := range g.Tasks {
		if id, ok := g.TaskByName(g.Tasks[i].Name); !ok || id != TaskID(i) {
			t.Errorf("%q found as %d, %v", g.Tasks[i].Name, id, ok)
		}
	}
	for _, name := range []string{"", "conv", "zzz"} {
		if _, ok := g.TaskByName(name); ok {
			t.Errorf("found %q", name)
		}
	}
}

// TestRefinement compares boxes over the refinement with element sets: the same
// elements, each once, and at most 2k-1 boxes for a range over k factors.
func TestRefinement(t *testing.T) {
	for _, shapes := range [][][]int{
		{{2, 3, 5, 7}, {2, 105}, {210}, {6, 35}},
		{{4, 1, 9}, {2, 2, 3, 3}, {36}, {1, 36, 1}},
		{{11}, {11, 1}},
		{{}, {1}, {1, 1}},
	} {
		fine := must.Get(refine(shapes))(t)
		rng := rand.New(rand.NewPCG(3, uint64(len(shapes))))
		for range 300 {
			shape := shapes[rng.IntN(len(shapes))]
			box := randomBox(rng, shape)
			var got []int
			boxes := must.Get(toFine(shape, fine, box))(t)
			for _, b := range boxes {
				got = append(got, elements(fine, b)...)
			}
			slices.Sort(got)
			want := elements(shape, box)
			if !slices.Equal(got, want) {
				t.Fatalf("box %v of %v over %v: elements %v, want %v", box, shape, fine, got, want)
			}
		}
	}
	for _, shapes := range [][][]int{{{2, 3}, {3, 2}}, {{4, 9}, {6, 6}}, {{2, 2, 5}, {5, 4}}} {
		if fine, err := refine(shapes); err == nil {
			t.Errorf("shapes %v have the refinement %v", shapes, fine)
		}
	}
}

// TestCheckAcceptsAndFinds runs Check on random graphs, and on copies in which one
// derived fact was falsified.
func TestCheckAcceptsAndFinds(t *testing.T) {
	for seed := range uint64(100) {
		if err := randomGraph(t, seed).Check(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	for i, damage := range []func(*Graph){
		func(g *Graph) { g.preds.to[0]++ },
		func(g *Graph) { g.succs.to[0]++ },
		func(g *Graph) { g.across().carried.to[0]-- },
		func(g *Graph) { g.across().reuseSuccs[0].to[0]++ },
		func(g *Graph) { rank := g.names().rank; rank[0], rank[1] = rank[1], rank[0] },
		func(g *Graph) { g.atomBytes[0]++ },
		func(g *Graph) { g.atomLists[0]++ },
		func(g *Graph) { g.isCarried[2] = true },
		func(g *Graph) { g.Tasks[0].Name = g.Tasks[1].Name },
		func(g *Graph) { g.Buffers[0].Name = g.Buffers[1].Name },
		func(g *Graph) { g.Tasks[0].Accesses[0].Box[0].Hi++ },
		func(g *Graph) { g.Tasks[0].Accesses[0].Mode = Read },
	} {
		g := sampleGraph(t)
		damage(g)
		if g.Check() == nil {
			t.Errorf("damage %d was not found", i)
		}
	}
}

func TestBuilderLimits(t *testing.T) {
	b := NewBuilder("huge")
	for i := range 200 { // 2^50 elements of 8 bytes each: 128 of them are 2^60 bytes
		b.Buffer(Buffer{Name: fmt.Sprint(i), Shape: []int{1 << 50}, Type: Float64})
		if full := i >= 128; (b.Err() != nil) != full {
			t.Fatalf("buffer %d: %v", i, b.Err())
		}
	}
}

// TestViewsMayNotShatter: a range 1:3 of a dimension of 4 is two boxes over 2×2, so
// one in each of 25 dimensions is 2^25 boxes.
func TestViewsMayNotShatter(t *testing.T) {
	b := NewBuilder("shatter")
	x := b.Buffer(Buffer{Name: "x", Shape: slices.Repeat([]int{2}, 50), Type: Uint8})
	v := b.View("v", x, slices.Repeat([]int{4}, 25)...)
	b.Task(Task{Name: "t", Accesses: []Access{{Region{v, slices.Repeat(Box{{1, 3}}, 25)}, Write}}})
	if _, err := b.Build(); err == nil || !strings.Contains(err.Error(), `task "t": buffer "v": box`) {
		t.Errorf("error %v", err)
	}
}

// TestShortFileCannotAskForMuch: 18 dimensions with two cuts each make
// 3^18 = 387,420,489 pieces, which are refused before they are made.
func TestShortFileCannotAskForMuch(t *testing.T) {
	const rank = 18
	b := NewBuilder("pieces")
	shape, box := make([]int, rank), make(Box, rank)
	for d := range shape {
		shape[d], box[d] = 4, Range{1, 2}
	}
	x := b.Buffer(Buffer{Name: "x", Shape: shape, Type: Uint8})
	b.Task(Task{Name: "t", Accesses: []Access{{Region{x, box}, Write}}})
	if _, err := b.Build(); err == nil || !strings.Contains(err.Error(), `buffer "x" cut it`) {
		t.Errorf("error %v", err)
	}
}
