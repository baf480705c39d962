package dag

import (
	"strings"
	"testing"

	"dahl/must"
)

func TestTextGolden(t *testing.T) {
	g := sampleGraph(t)
	golden(t, "sample.txt", text(t, g))
	if g, err := Expand(g); err != nil {
		t.Fatal(err)
	} else {
		golden(t, "sample.expanded.txt", text(t, g))
	}
}

func TestTextRoundTrip(t *testing.T) {
	graphs := []*Graph{sampleGraph(t)}
	for seed := range uint64(200) {
		graphs = append(graphs, randomGraph(t, seed))
	}
	for i, g := range graphs {
		want := text(t, g)
		back, err := ParseText(strings.NewReader(want), "g")
		if err != nil {
			t.Fatalf("graph %d: %v in\n%s", i, err, want)
		}
		if got := text(t, back); got != want {
			t.Fatalf("graph %d: read back as\n%s\nwas\n%s", i, got, want)
		}
		if back.Hash() != g.Hash() {
			t.Fatalf("graph %d: hash changed", i)
		}
		if err := back.Check(); err != nil {
			t.Fatalf("graph %d: %v", i, err)
		}
	}
}

// TestHashSeesEverything changes one thing at a time.
func TestHashSeesEverything(t *testing.T) {
	seen := map[string]int{}
	for i, change := range []func(*Graph){
		func(*Graph) {},
		func(g *Graph) { g.Name = "other" },
		func(g *Graph) { g.Buffers[0].Home = "" },
		func(g *Graph) { g.Buffers[0].Role = State },
		func(g *Graph) { g.Buffers[2].Type = Float64 },
		func(g *Graph) { g.Buffers[2].Layout = "nhwc" },
		func(g *Graph) { g.Buffers[9].Accumulators = 3 },
		func(g *Graph) { g.Buffers[9].Versions = 3 },
		func(g *Graph) { g.OpCosts[0].Costs[0].Ns++ },
		func(g *Graph) { g.Tasks[0].Flops++ },
		func(g *Graph) { g.Tasks[0].MovedBytes++ },
		func(g *Graph) { g.Tasks[0].Params = g.Tasks[0].Params[:1] },
		func(g *Graph) { g.Tasks[0].Labels.MicroBatch++ },
		func(g *Graph) { g.Tasks[0].Priority-- },
		func(g *Graph) { g.Tasks[0].Shape = "3" },
		func(g *Graph) { g.Tasks[0].Type = Float64 },
		func(g *Graph) { g.Tasks[0].Op = "conv" },
		func(g *Graph) { g.Tasks[0].Accesses[0].Box[0].Lo++ },
		func(g *Graph) { g.Tasks[0].Accesses[0].Mode = ReadWrite },
		func(g *Graph) { g.Tasks[0].Accesses[0].Buffer++ },
		func(g *Graph) { g.Tasks[0].Costs = []Cost{{Key: "cpu"}} },
		func(g *Graph) { g.Tasks[0].Placement = &Placement{Device: "cpu"} },
		func(g *Graph) { g.Tasks[1].After = []TaskID{0} },
		func(g *Graph) { g.Tasks = g.Tasks[:len(g.Tasks)-1] },
	} {
		g := sampleGraph(t)
		change(g)
		h := g.Hash()
		if len(h) != 64 {
			t.Fatalf("hash %q", h)
		}
		if j, ok := seen[h]; ok {
			t.Errorf("changes %d and %d have one hash", i, j)
		}
		seen[h] = i
	}
}

// textErrors are mistakes and what the message must say; each is one line.
var textErrors = []struct{ text, want string }{
	{"", `g:1: no graph`},
	{"# nothing\n", `g:2: no graph`},
	{"buffer a", `the first line is "graph NAME"`},
	{"graph a b", `"b" is one too many`},
	{"graph \"a", "no closing quote"},
	{"graph \"a\x1b", `"\"a\x1b" has no closing quote`},
	{"graph g\nbuffer \"a\x1b[2J\" float32 [2] input", `g:2: "a\x1b[2J" holds a control character; write it without`},
	{"graph g\ntask t op=\"\\u009b\"", `g:2: "\u009b" holds a control character`},
	{"graph g\nbuffer a float32 [2,x] input", `g:2: extent is "x"`},
	{"graph g\nbuffer a float32 [2,-3] input", `g:2: buffer "a": extent -3`},
	{"graph g\nbuffer a float32 [2 input", `"]" belongs`},
	{"graph g\nbuffer a float16 [2] input", `element type "float16" is not one of uint8, int32`},
	{"graph g\nbuffer a float32 [2] inputs", `role "inputs" is not one of`},
	{"graph g\nbuffer a float32 [2] input hom=x", `a buffer has no "hom"`},
	{"graph g\nbuffer a float32 [2] input copies=0", `g:2: 0 versions; write a number from 1 to 64`},
	{"graph g\nbuffer a float32 [2] input copies=65", `g:2: buffer "a": 65 versions; write a number from 1 to 64`},
	{"graph g\nbuffer a float32 [2] parameter copies=2\ntask t\n write a", `buffer "a" has 2 versions and is a parameter, of which there is one`},
	{"graph g\nbuffer a float32 [2] activation home=host copies=2\ntask t\n write a", `buffer "a" has 2 versions and a home, where its contents are before the first step; leave one of the two out`},
	{"graph g\nbuffer a float32 [2] input copies=3\ntask t\n read a", `buffer "a" has 3 versions and no task writes it`},
	{"graph g\nbuffer a float32 [2] activation copies=3\ntask t\n read a[0:1]\ntask u\n write a", `buffer "a" has 3 versions, and a task reads it before a task of the step writes it`},
	{"graph g\nbuffer a float32 [1125899906842625] input", "more than 1125899906842624 elements"},
	{"graph g\nbuffer a float32 [99999999999999999999] input", "write an integer"},
	{"graph g\nbuffer a float64 [2] input\nbuffer a float64 [2] input", `g:3: buffer "a" is declared twice`},
	{"graph g\nbuffer a float64 [6] input\nview b a [5]", `g:3: view "b": shape [5] does not hold the elements`},
	{"graph g\nview b a [5]", `g:2: no buffer "a"`},
	{"graph g\n  read a", `"read" before the first task`},
	{"graph g\ntask t\n reads a", `g:3: a task has no "reads"`},
	{"graph g\ntask t\n read a", `g:3: no buffer "a"`},
	{"graph g\ntask t opp=x", `a task's line has no "opp"`},
	{"graph g\ntask t\n\ntask t\n", `g:4: task "t" is declared twice`},
	{"graph g\nbuffer a uint8 [5] input\ntask t\n read a[0:6]", `g:4: range 0:6 of "a" is empty or outside 0:5`},
	{"graph g\nbuffer a uint8 [5] input\ntask t\n read a[2:2]", `is empty`},
	{"graph g\nbuffer a uint8 [5] input\ntask t\n read a[-1:2]", `outside 0:5`},
	{"graph g\nbuffer a uint8 [5] input\ntask t\n read a[:,:]", `more than the 1 dimensions`},
	{"graph g\nbuffer a uint8 [5,3] input\ntask t\n read a[:]", `has 1 dimensions; its shape is [5 3]`},
	{"graph g\ntask t\n work flops=NaN", `flops is "NaN"; write a finite number`},
	{"graph g\ntask t\n work flops=-1", `g:2: task "t": -1 flops`},
	{"graph g\ntask t\n work flops=1e31", `g:2: task "t": 1e+31 flops`},
	{"graph g\ntask t\n work bytes=-1", `task "t": -1 is negative`},
	{"graph g\ntask t\n work bytes=1e3", `bytes is "1e3"; write an integer`},
	{"graph g\ntask t\n params a=Inf", `a is "Inf"; write a finite number`},
	{"graph g\ntask t\n params a=1 a=2", `parameter "a" = 2 is nameless, given twice`},
	{"graph g\ntask t\n after u\ntask u", `g:3: no earlier task "u" to follow`},
	{"graph g\ntask t\n after t", `g:3: no earlier task "t" to follow`},
	{"graph g\ntask t\n costs", `costs of nothing`},
	{"graph g\ntask t\n costs cpu=-4", `-4 ns on "cpu"`},
	{"graph g\ntask t\n costs cpu=4,-1", `-1 joules on "cpu"`},
	{"graph g\ntask t\n costs cpu=4 cpu=5", `cost of "cpu" is given twice`},
	{"graph g\ntask t\n costs /go=4", `cost key "/go"; write "device or kind`},
	{"graph g\ntask t\n costs cpu=9223372036854775807", `write a number from 0 to`},
	{"graph g\ntask t\n labels micro=1", `labels has no "micro"`},
	{"graph g\nbuffer a uint8 [6] input\nview b a [2,3]\nview c a [3,2]", "no common refinement"},
	{"graph g\nbuffer a uint8 [6] input\ntask t\n write a[0:4]\n read a[3:6]", `task "t" (): operands 0 (write of "a") and 1 (read of "a") overlap`},
	{"graph g\n\xff", `g:2: not UTF-8 text`},
}

func TestParseTextErrors(t *testing.T) {
	for _, c := range textErrors {
		_, err := ParseText(strings.NewReader(c.text), "g")
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: error %v, want %q on one line", c.text, err, c.want)
		}
	}
}

func FuzzParseText(f *testing.F) {
	for _, c := range textErrors {
		f.Add(c.text)
	}
	var s strings.Builder
	must.Do(f, sampleGraph(f).WriteText(&s))
	f.Add(s.String())
	f.Add(s.String()[:s.Len()/2])
	f.Fuzz(func(t *testing.T, in string) {
		g, err := ParseText(strings.NewReader(in), "g")
		if err != nil {
			oneLine(t, err)
			return
		}
		want := text(t, g)
		back, err := ParseText(strings.NewReader(want), "g")
		if err != nil {
			t.Fatalf("%v in\n%s", err, want)
		}
		if got := text(t, back); got != want {
			t.Fatalf("read back as\n%s\nwas\n%s", got, want)
		}
	})
}

// oneLine holds for every error a user may see.
func oneLine(t *testing.T, err error) {
	t.Helper()
	if s := err.Error(); !strings.HasPrefix(s, "g:") || strings.Contains(s, "\n") {
		t.Fatalf("error %q is not one line that begins with the file", s)
	}
}
