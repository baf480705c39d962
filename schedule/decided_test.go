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
		own := PolicyInfo{Name: "own", Static: func(*Problem) (*Plan, error) { return plan, nil }}
		for _, choice := range []Choice{{Plans: []*Plan{plan}}, {Policy: own}} {
			_, err := priced.Decide(choice)
			if apart := len(order[0]) == 1; (err != nil) != apart {
				t.Errorf("%v by policy %q: %v", order, choice.Policy.Name, err)
			}
		}
		if _, err := priced.Decide(Choice{}); err != nil {
			t.Errorf("after %v: %v", order, err)
		}
	}
}
