package dag

import (
	"fmt"
	"slices"
)

// Program is graphs with common parameters and optimiser state (training step, short last batch, evaluation), and the
// order in which they run.
type Program struct {
	Name   string
	Graphs []*Graph
	Order  []Segment
}

// Segment is a number of consecutive steps of one graph.
type Segment struct {
	Graph int // index into Graphs
	Steps int
}

// Check verifies that buffers shared by name agree in shape and type. The order has to name existing graphs.
func (p *Program) Check() error {
	shared := map[string]*Buffer{}
	for _, g := range p.Graphs {
		for i := range g.Buffers {
			b := &g.Buffers[i]
			if b.Role != Parameter && b.Role != State {
				continue
			}
			other, ok := shared[b.Name]
			if !ok {
				shared[b.Name] = b
			} else if other.Type != b.Type || !slices.Equal(other.Shape, b.Shape) {
				return fmt.Errorf("program %q: %s %q is %v %v in one graph and %v %v in %q",
					p.Name, b.Role, b.Name, other.Type, other.Shape, b.Type, b.Shape, g.Name)
			}
		}
	}
	for _, s := range p.Order {
		if s.Graph < 0 || s.Graph >= len(p.Graphs) || s.Steps < 1 {
			return fmt.Errorf("program %q: segment of %d steps of graph %d; there are %d graphs", p.Name, s.Steps, s.Graph, len(p.Graphs))
		}
	}
	return nil
}
