package dag

import (
	"strings"
	"testing"

	"dahl/must"
)

// onceGraph packs a weight by two tasks, scales the result by a state, and multiplies rows of an input with it. Another
// state counts steps, and what is made of that varies. So does a buffer of which one half is made of the weight. No task sees the
// flat view of the product, which neither part keeps.
const onceGraph = `graph "step"
buffer x float32 [3,5] input home=host
buffer w float32 [2,5] parameter home=host
buffer scale float32 [1] state home=host
buffer count float32 [1] state home=host
buffer unused float32 [7] parameter home=host
buffer turned float32 [5,2] activation
buffer packed float32 [5,2] activation
view packed.flat packed [10]
buffer y float32 [3,2] activation
view y.flat y [6]
buffer counted float32 [1] activation
buffer half float32 [2] activation
task count op=a type=float32
  readwrite count
task turn0 op=a type=float32
  write turned[0:2,:]
  read w[:,0:2]
task turn1 op=a type=float32
  write turned[2:5,:]
  read w[:,2:5]
task scale op=a type=float32
  write packed
  read turned
  read scale
task product op=a type=float32
  write y
  read x
  read packed.flat
  after turn0 count scale
task counted op=a type=float32
  write counted
  read count
task half0 op=a type=float32
  write half[0:1]
  read w[0:1,:]
task half1 op=a type=float32
  write half[1:2]
  read x[0:1,:]
task fill op=a type=float32
  write turned[0:2,:]
`

// TestOnce parts a graph by hand. A task that reads nothing, as a feed does, may write other numbers in each step; the last one of the graph
// makes half of the turned weight vary, so that all is packed in each step.
func TestOnce(t *testing.T) {
	text := func(g *Graph) string {
		var b strings.Builder
		must.Do(t, g.WriteText(&b))
		return b.String()
	}
	g := must.Get(ParseText(strings.NewReader(onceGraph), "g"))(t)
	once, rest, err := g.Once("first")
	if must.Do(t, err); once != nil || rest != g {
		t.Errorf("%s\nruns once", text(once))
	}
	lines, _, _ := strings.Cut(onceGraph, "task fill")
	once, rest, err = must.Get(ParseText(strings.NewReader(lines), "g"))(t).Once("first")
	must.Do(t, err)
	cut := func(from, to string) string {
		_, after, _ := strings.Cut(lines, from)
		part, _, _ := strings.Cut(after, to)
		return from + part
	}
	want := `graph "first"
buffer w float32 [2,5] parameter home=host
buffer scale float32 [1] state home=host
buffer unused float32 [7] parameter home=host
buffer turned float32 [5,2] activation
buffer packed float32 [5,2] state home=host
` + cut("task turn0", "task product")
	if got := must.Get(ParseText(strings.NewReader(want), "g"))(t); text(once) != text(got) {
		t.Errorf("once: got\n%swant\n%s", text(once), text(got))
	}
	want = `graph "step"
buffer x float32 [3,5] input home=host
buffer w float32 [2,5] parameter home=host
buffer count float32 [1] state home=host
buffer packed float32 [5,2] state home=host
view packed.flat packed [10]
buffer y float32 [3,2] activation
buffer counted float32 [1] activation
buffer half float32 [2] activation
` + cut("task count", "task turn0") + strings.Replace(cut("task product", "task fill"), " turn0 count scale\n", " count\n", 1)
	if got := must.Get(ParseText(strings.NewReader(want), "g"))(t); text(rest) != text(got) {
		t.Errorf("rest: got\n%swant\n%s", text(rest), text(got))
	}
}
