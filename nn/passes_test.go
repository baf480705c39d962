package nn_test

import (
	"math"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/nn"
	"dahl/nn/models"
)

// TestPasses checks an invariant after each pass of a lowering, for a training step and an evaluation of every built-in network, in
// micro-batches and with recomputed layers.
func TestPasses(t *testing.T) {
	for _, info := range models.All() {
		m := info.New()
		if nn.Elems(m.Input) > 100_000 || isLarge(m) || testing.Short() && len(m.Stages) > 100 {
			continue // the same layers as of smaller images
		}
		l := nn.DefaultLowering(m, 12, 1<<20, dag.Float32)
		for _, c := range []struct{ train, twice bool }{{true, false}, {true, true}, {false, false}} {
			l.MicroBatches, l.Default.Recompute = 1, c.twice
			for name, ll := range l.Layers {
				ll.Recompute = c.twice
				l.Layers[name] = ll
			}
			if c.twice {
				l.MicroBatches = 2
			}
			check := passChecks{t: t, m: m, what: info.Name}
			opt := nn.LowerOptions{Batch: 12, Samples: 12, Type: dag.Float32, Train: c.train, Lowering: l, After: check.after}
			watched := must.Get(m.Lower(opt))(t)
			if opt.After = nil; must.Get(m.Lower(opt))(t).Hash() != watched.Hash() {
				t.Errorf("%s: nobody looks, and the graph differs", info.Name)
			}
			if check.seen != strings.Join(nn.Passes(), " ")+" " {
				t.Errorf("%s: passes %s", info.Name, check.seen)
			}
		}
	}
}

// passChecks compares the state after a pass with the one before it.
type passChecks struct {
	t      *testing.T
	m      *nn.Model
	what   string
	seen   string
	before *dag.Graph
}

func (c *passChecks) after(pass string, l *nn.Lowered) {
	c.seen += pass + " "
	var text strings.Builder
	must.Do(c.t, l.Dump(&text))
	switch pass {
	case "group":
		c.groups(l.Groups, text.String())
	case "tile":
		c.tiles(l.Graph)
	case "expand":
		c.expanded(l.Graph)
	case "recompute":
		checkRecomputed(c.t, c.what, [2]*dag.Graph{c.before, l.Graph})
	}
	if got := strings.Count(text.String(), "\ntask "); l.Graph != nil && got != len(l.Graph.Tasks) {
		c.t.Errorf("%s after %s: the text has %d tasks, the graph %d", c.what, pass, got, len(l.Graph.Tasks))
	}
	c.before = l.Graph
}

// groups: each layer is in one group, and behind one that it reads there.
func (c *passChecks) groups(groups [][]*nn.Stage, text string) {
	layers := 0
	for _, group := range groups {
		layers += len(group)
		for i, s := range group[1:] {
			if before := group[i]; s != &c.m.Stages[before.Readers()[0].Stage] || len(before.Readers()) != 1 {
				c.t.Errorf("%s: %s is fused behind %s", c.what, s.Name, before.Name)
			}
		}
	}
	if lines := strings.Count(text, "\n"); layers != len(c.m.Stages) || lines != len(groups)+1 {
		c.t.Errorf("%s: %d layers in %d groups, a text of %d lines; want %d layers", c.what, layers, len(groups), lines, len(c.m.Stages))
	}
}

// tiles: the tasks of the forward pass write each element of an output once.
func (c *passChecks) tiles(g *dag.Graph) {
	written := map[dag.BufferID]int64{}
	for i := range g.Tasks {
		if g.Tasks[i].Labels.Phase != "forward" {
			continue
		}
		for _, a := range g.Tasks[i].Accesses {
			if b := &g.Buffers[a.Buffer]; a.Mode == dag.Write && strings.Contains(b.Name, ".out") {
				box := a.Box
				if box == nil {
					box = dag.Whole(b.Shape)
				}
				written[a.Buffer] += box.Elems()
			}
		}
	}
	for id, n := range written {
		if b := &g.Buffers[id]; n != b.Elems() {
			c.t.Errorf("%s: %d elements of %s are written, of %d", c.what, n, b.Name, b.Elems())
		}
	}
	if len(written) == 0 {
		c.t.Errorf("%s: no output is written", c.what)
	}
}

// expanded: no task adds to what others add to, and those that were there do the same work.
func (c *passChecks) expanded(g *dag.Graph) {
	flops := func(g *dag.Graph) (sum float64) {
		for i := range g.Tasks {
			if g.Tasks[i].Labels.Phase != "reduce" {
				sum += g.Tasks[i].Flops
			}
		}
		return sum
	}
	for i := range g.Tasks {
		for _, a := range g.Tasks[i].Accesses {
			if a.Mode == dag.Reduce {
				c.t.Errorf("%s: %s still adds to %s", c.what, g.Tasks[i].Name, g.Buffers[a.Buffer].Name)
			}
		}
	}
	if got, want := flops(g), flops(c.before); math.Abs(got-want) > 1e-9*want {
		c.t.Errorf("%s: %g flops once sums are expanded, %g before", c.what, got, want)
	}
}
