package schedule

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/platform"
)

// variantGraph is one call that exists twice, and a platform that knows two variants
// of it: fast takes 3 ns, slow 7 ns.
func variantGraph(t *testing.T) (*dag.Graph, *platform.Platform) {
	t.Helper()
	b := dag.NewBuilder("calls")
	x := b.Buffer(dag.Buffer{Name: "x", Shape: []int{4}, Type: dag.Float32})
	for _, name := range []string{"a", "b"} {
		b.Task(dag.Task{Name: name, Op: "op", Type: dag.Float32, Shape: "4", Accesses: []dag.Access{access(x, dag.Write)}})
	}
	g := must.Get(b.Build())(t)
	p := &platform.Platform{Name: "cores", Memories: []platform.Memory{{Name: "ram", BandwidthBytesPerSec: 1e9}},
		Devices: []platform.Device{{Name: "cpu", Kind: "cpu", Count: 2, PowerSource: platform.Guess}}}
	must.Do(t, p.Complete())
	for variant, ns := range map[string]float64{"fast": 3, "slow": 7} {
		p.Models = append(p.Models, platform.Model{Op: "op", Variant: variant, Type: "float32", Device: "cpu", Shape: "4", Active: 2, MedianNs: ns, Count: 1})
	}
	return g, p
}

// TestPlannedVariants: models alone choose the faster variant; a plan's choice wins
// over them, a variant asked for by name over both.
func TestPlannedVariants(t *testing.T) {
	g, p := variantGraph(t)
	planned := Variants{"cpu": {"op float32 4": "slow"}}
	for _, c := range []struct {
		opt     costOptions
		variant string
		ns      time.Duration
	}{
		{costOptions{target: Unbound}, "fast", 3},
		{costOptions{target: Unbound, variants: planned}, "slow", 7},
		{costOptions{target: oneOffer{"fast"}, variants: planned}, "fast", 3},
		{costOptions{target: Unbound, variants: Variants{"cpu": {"op float32 5": "slow"}}}, "fast", 3},
	} {
		costs := must.Get(newCosts(g, p, c.opt))(t)
		cost, _ := costs.Of(1, 0)
		if cost.Variant != c.variant || cost.Duration != c.ns {
			t.Errorf("%+v: variant %q of %v, want %q of %v", c.opt, cost.Variant, cost.Duration, c.variant, c.ns)
		}
		if got, want := costs.Variants(g, p), (Variants{"cpu": {"op float32 4": c.variant}}); !reflect.DeepEqual(got, want) {
			t.Errorf("%+v: costs list %v, want %v", c.opt, got, want)
		}
	}
}

// TestUnmeasuredVariant: a planned variant that no model knows is still what runs.
func TestUnmeasuredVariant(t *testing.T) {
	g, p := variantGraph(t)
	costs := must.Get(newCosts(g, p, costOptions{target: Unbound, variants: Variants{"cpu": {"op float32 4": "other"}}}))(t)
	if cost, _ := costs.Of(0, 0); cost.Variant != "other" {
		t.Errorf("variant %q, want the plan's", cost.Variant)
	}
}

func TestVariantsRefused(t *testing.T) {
	g, p := variantGraph(t)
	for _, c := range []struct {
		v    Variants
		says string
	}{
		{Variants{"gpu": {"op float32 4": "fast"}}, `no device "gpu"`},
		{Variants{"cpu": {"op float32 5": "fast"}}, `no call "op float32 5"`},
		{Variants{"cpu": {"op float32 4": ""}}, "empty variant"},
	} {
		if err := c.v.Check(g, p); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v: %v, want an error that says %s", c.v, err, c.says)
		}
	}
}

// TestByVariant: every variant that a model or the graph knows has its cost, the one that nobody has fixed first. At half the
// clock of 3 and 7 ns that follow it 6 and 14 are left, unless they were measured there.
func TestByVariant(t *testing.T) {
	models := func(change func(m *platform.Model)) func(*dag.Graph, *platform.Platform) {
		return func(_ *dag.Graph, p *platform.Platform) {
			p.Devices[0].Clocks = []platform.Clock{{Name: "full", Scale: 1}, {Name: "half", Scale: 0.5}}
			for i := range p.Models {
				p.Models[i].Compute = 1
				change(&p.Models[i])
			}
		}
	}
	alike := models(func(*platform.Model) {})
	slowInSteps := models(func(m *platform.Model) {
		if m.Variant == "slow" {
			m.StepNs = 9
		}
	})
	fastInSteps := models(func(m *platform.Model) {
		if m.Variant == "fast" {
			m.StepNs = 8
		}
	})
	measuredThere := func(g *dag.Graph, p *platform.Platform) {
		alike(g, p)
		m := p.Models[slices.IndexFunc(p.Models, func(m platform.Model) bool { return m.Variant == "slow" })]
		m.Clock, m.MedianNs = "half", 4
		p.Models = append(p.Models, m)
	}
	given := func(g *dag.Graph, p *platform.Platform) {
		alike(g, p)
		for t := range g.Tasks {
			g.Tasks[t].Costs = []dag.Cost{{Key: "cpu/x", Ns: 5}, {Key: "*/y", Ns: 2}, {Key: "cpu/z", Ns: 4}}
		}
	}
	for _, c := range []struct {
		words  string
		change func(*dag.Graph, *platform.Platform)
		target Target
		clock  platform.ClockID
		want   string
	}{
		{"models", alike, Unbound, 0, "fast 3ns, slow 7ns"},
		{"a target that leaves no choice", alike, oneOffer{"slow"}, 0, "slow 7ns"},
		{"another clock", alike, Unbound, 1, "fast 6ns, slow 14ns"},
		{"measured at it", measuredThere, Unbound, 1, "fast 6ns, slow 4ns"},
		{"the first was measured inside steps", fastInSteps, Unbound, 0, "fast 8ns"},
		{"another was measured inside steps", slowInSteps, Unbound, 0, "fast 3ns, slow 9ns"},
		{"given by device before kind", given, Unbound, 0, "z 4ns, x 5ns"},
	} {
		g, p := variantGraph(t)
		c.change(g, p)
		priced := must.Get(Price(&dag.Program{Graphs: []*dag.Graph{g}}, p, c.target))(t)
		var got []string
		for _, cost := range priced.ByVariant(0, c.clock)[priced.Costs(0).Class[1]][0] {
			got = append(got, cost.Variant+" "+cost.Duration.String())
		}
		slices.Sort(got[min(1, len(got)):]) // models come as a map has them
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("%s: %s, want %s", c.words, text, c.want)
		}
	}
}
