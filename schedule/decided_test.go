package schedule

import (
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/platform"
)

// unboundCosts are the costs of a graph whose tasks need no kernel.
func unboundCosts(g *dag.Graph, p *platform.Platform) (*Costs, error) {
	return newCosts(g, p, costOptions{target: Unbound})
}

// oneOffer is a target of which every task can be run in one way, or in any.
type oneOffer struct{ variant string }

func (o oneOffer) Offers(*dag.Graph, dag.TaskID, string) []Offer {
	return []Offer{{Variant: o.variant}}
}

func access(b dag.BufferID, m dag.Mode) dag.Access {
	return dag.Access{Region: dag.Region{Buffer: b}, Mode: m}
}

// TestDecideAgain: which tasks have to share a worker is found once for all decisions, and
// each decision binds them for itself alone. A plan that a policy makes is checked like one that
// is given.
func TestDecideAgain(t *testing.T) {
	b := dag.NewBuilder("together")
	for _, name := range []string{"a", "b"} {
		b.Task(dag.Task{Name: name, Costs: []dag.Cost{{Key: dag.AnyDevice, Ns: 5}}, Placement: &dag.Placement{Colocate: "both"}})
	}
	g := must.Get(b.Build())(t)
	priced := must.Get(Price(&dag.Program{Graphs: []*dag.Graph{g}}, mixed(t), Unbound))(t)
	for _, order := range [][][]dag.TaskID{{{0, 1}}, {nil, {0, 1}}, {{0}, {1}}, {nil, nil, {0, 1}}} {
		plan := &Plan{Order: order}
		own := fixed{plan: plan}
		for _, choice := range []Choice{{Plans: []*Plan{plan}}, {Policy: own}} {
			_, err := priced.Decide(choice)
			if apart := len(order[0]) == 1; (err != nil) != apart {
				t.Errorf("%v by own policy %v: %v", order, choice.Policy != nil, err)
			}
		}
		if _, err := priced.Decide(Choice{Policy: fixed{plan: &Plan{Order: [][]dag.TaskID{{0, 1}}}}}); err != nil {
			t.Errorf("after %v: %v", order, err)
		}
	}
}

// fixed is a policy that has one plan for all problems.
type fixed struct {
	online bool
	plan   *Plan
}

func (f fixed) Doc() Doc                     { return Doc{Name: "fixed", Online: f.online} }
func (f fixed) Plan(*Problem) (*Plan, error) { return f.plan, nil }

// TestDecidesLater: an online policy decides while the program runs if all devices and all homes are in the host's memory, whether
// buffers name it, say "host" or nothing.
func TestDecidesLater(t *testing.T) {
	memories := []platform.Memory{{Name: "ram"}, {Name: "hbm"}}
	cores := &platform.Platform{Memories: memories, Devices: []platform.Device{{Name: "cpu", Kind: "cpu"}}}
	both := &platform.Platform{Memories: memories, Devices: []platform.Device{{Name: "cpu", Kind: "cpu"}, {Name: "gpu", Kind: "emulated", Memory: 1}}}
	for _, c := range []struct {
		p             *platform.Platform
		home          string
		online, later bool
	}{
		{cores, "", true, true}, {cores, dag.HostHome, true, true}, {cores, "ram", true, true},
		{cores, "hbm", true, false}, {cores, "attic", true, false},
		{cores, dag.HostHome, false, false}, {both, dag.HostHome, true, false},
	} {
		g := &dag.Graph{Buffers: []dag.Buffer{{Name: "x", Home: c.home}}}
		priced := &Priced{Platform: c.p, Program: &dag.Program{Graphs: []*dag.Graph{g}}}
		if got := priced.DecidesLater(fixed{online: c.online}); got != c.later {
			t.Errorf("online %v on %d devices with a home %q: %v", c.online, len(c.p.Devices), c.home, got)
		}
	}
}
