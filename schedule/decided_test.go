package schedule

import (
	"fmt"

	"dahl/dag"
	"dahl/platform"
)

// unboundCosts are the costs of a graph whose tasks need no kernel.
func unboundCosts(g *dag.Graph, p *platform.Platform) (*Costs, error) {
	return newCosts(g, p, costOptions{target: Unbound})
}

// placeWith places plans on costs and with scratch sizes, by graph and memory, that a test
// gives; nil: no scratch.
func placeWith(prog *dag.Program, p *platform.Platform, plans []*Plan, costs []*Costs, scratch [][]int64) (*Placed, error) {
	c := &compiler{prog: prog, p: p, plans: plans, scratch: scratch, limits: map[platform.MemoryID]int64{}}
	if scratch == nil {
		for range prog.Graphs {
			c.scratch = append(c.scratch, make([]int64, len(p.Memories)))
		}
	}
	for i, g := range prog.Graphs {
		problem := &Problem{Graph: g, Platform: p, Costs: costs[i], Steps: 1}
		if err := plans[i].Check(problem); err != nil {
			return nil, fmt.Errorf("place graph %q: %w", g.Name, err)
		}
		c.problems = append(c.problems, problem)
	}
	return c.compile()
}

// oneOffer is a target of which every task can be run in one way, or in any.
type oneOffer struct{ variant string }

func (o oneOffer) Offers(*dag.Graph, dag.TaskID, string) []Offer {
	return []Offer{{Variant: o.variant}}
}

func access(b dag.BufferID, m dag.Mode) dag.Access {
	return dag.Access{Region: dag.Region{Buffer: b}, Mode: m}
}
