package schedule

import (
	"testing"

	"dahl/dag"
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
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	priced, err := Price(&dag.Program{Graphs: []*dag.Graph{g}}, mixed(t), Unbound)
	if err != nil {
		t.Fatal(err)
	}
	for _, order := range [][][]dag.TaskID{{{0, 1}}, {nil, {0, 1}}, {{0}, {1}}, {nil, nil, {0, 1}}} {
		plan := &Plan{Order: order}
		own := NewPolicy(Doc{Name: "own"}, func(*Problem) (*Plan, error) { return plan, nil })
		for _, choice := range []Choice{{Plans: []*Plan{plan}}, {Policy: own}} {
			_, err := priced.Decide(choice)
			if apart := len(order[0]) == 1; (err != nil) != apart {
				t.Errorf("%v by own policy %v: %v", order, choice.Policy != nil, err)
			}
		}
		if _, err := priced.Decide(Choice{}); err != nil {
			t.Errorf("after %v: %v", order, err)
		}
	}
}

// TestDecidesLater: an online policy decides while the program runs if all devices and all homes are in the host's memory, whether
// buffers name it, say "host" or nothing.
func TestDecidesLater(t *testing.T) {
	memories := []platform.Memory{{Name: "ram"}, {Name: "hbm"}}
	cores := &platform.Platform{Memories: memories, Devices: []platform.Device{{Name: "cpu", Kind: "cpu"}}}
	both := &platform.Platform{Memories: memories, Devices: []platform.Device{{Name: "cpu", Kind: "cpu"}, {Name: "gpu", Kind: "emulated", Memory: 1}}}
	for _, c := range []struct {
		p      *platform.Platform
		home   string
		policy Policy
		later  bool
	}{
		{cores, "", Eager, true}, {cores, dag.HostHome, DMDA, true}, {cores, "ram", DMDAR, true},
		{cores, "hbm", Eager, false}, {cores, "attic", Eager, false},
		{cores, dag.HostHome, HEFT, false}, {both, dag.HostHome, Eager, false},
	} {
		g := &dag.Graph{Buffers: []dag.Buffer{{Name: "x", Home: c.home}}}
		priced := &Priced{Platform: c.p, Program: &dag.Program{Graphs: []*dag.Graph{g}}}
		if got := priced.DecidesLater(c.policy); got != c.later {
			t.Errorf("%s on %d devices with a home %q: %v", c.policy.Doc().Name, len(c.p.Devices), c.home, got)
		}
	}
}
