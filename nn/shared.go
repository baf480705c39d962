package nn

import (
	"fmt"
	"slices"
	"strings"

	"dahl/dag"
	"dahl/naming"
)

// Several layers may have one parameter, as in a network that applies one layer twice, or with one table for its embedding
// and its last layer. It is one buffer, with one state of the optimiser and one update. Each layer has a buffer of its own for
// the gradient, in whatever layout and tiles it computes it. The first layer has the parameter. Its gradient comes last in
// the backward pass, and the gradients of the other layers are added to it, from the last layer to the first:
//
//	dL/dw = Σ over layers of dL/dw with the parameters of all other layers held fixed.

// share finds the parameters that a layer has of earlier ones.
func (m *Model) share(s *Stage) error {
	for _, name := range s.shares {
		from, params := m.sharedBy(name)
		if params == nil {
			known := m.withWeights()
			return m.sharingFault("layer %q: it shares %q, and no layer with weights before it has this name; there are %s%s", s.Name, name, strings.Join(known, ", "), naming.DidYouMean(name, known))
		}
		for _, p := range params {
			if err := s.takeParameter(p, from); err != nil {
				return m.sharingFault("layer %q: it shares %q: %w", s.Name, name, err)
			}
		}
		from.shared, s.shared = true, true
	}
	return nil
}

// WeightsOf is the key of a model file for [Named.Shares].
const WeightsOf = "weights_of"

// sharingFault is an error of the layer that is being placed.
func (m *Model) sharingFault(format string, args ...any) error {
	return &Fault{len(m.Stages), "." + WeightsOf, fmt.Errorf(format, args...)}
}

// withWeights are the names of the layers that have parameters.
func (m *Model) withWeights() (names []string) {
	for i := range m.Stages {
		if len(m.Stages[i].Params) > 0 {
			names = append(names, m.Stages[i].Name)
		}
	}
	return names
}

// sharedBy is the layer of a name, or of a parameter's name, and the parameters that are meant.
func (m *Model) sharedBy(name string) (from *Stage, params []*Parameter) {
	for i := range m.Stages {
		s := &m.Stages[i]
		for j := range s.Params {
			if s.Name == name || s.Params[j].Name == name {
				from, params = s, append(params, &s.Params[j])
			}
		}
	}
	return from, params
}

// takeParameter makes a parameter of an earlier layer the layer's own of the same kind.
func (s *Stage) takeParameter(p *Parameter, from *Stage) error {
	short := from.shortName(p)
	i := slices.IndexFunc(s.Params, func(own Parameter) bool { return s.shortName(&own) == short })
	if i < 0 {
		return fmt.Errorf("this layer has no %s", short)
	}
	own := &s.Params[i]
	if !slices.Equal(own.Shape, p.Shape) {
		return fmt.Errorf("its %s has shape %s, and that of this layer %s", short, naming.ShapeText(p.Shape), naming.ShapeText(own.Shape))
	}
	if own.Of = p.Of; own.Of == "" {
		own.Of = p.Name
	}
	return nil
}

// SharedNames maps the names of parameters in further layers to their names in [Model.State].
func (m *Model) SharedNames() map[string]string {
	all := map[string]string{}
	for i := range m.Stages {
		for _, p := range m.Stages[i].Params {
			if p.Of != "" {
				all[p.Name] = p.Of
			}
		}
	}
	return all
}

// sumShared adds to the gradients of a layer the gradients of later layers for the same parameters, in the parts of the
// updates. The last layers come first.
func (l *lowerer) sumShared(n *Node) {
	if !n.shared {
		return
	}
	for i, grad := range n.grads {
		p := &n.Params[i]
		_, of := l.updated(n, i)
		for _, later := range slices.Backward(l.nodes) {
			for j := range later.grads {
				if later.Params[j].Of != p.Name {
					continue
				}
				l.updateTasks(n, i, func(r dag.Range) dag.Task {
					box := boxAt(p.Shape, of, r)
					return dag.Task{
						Name: fmt.Sprintf("%s.%s.add.%s.%s[%s]", n.Name, phaseBackward, later.Name, later.shortName(&later.Params[j]), rangeText(r)), Op: "add",
						Labels: labelsOf(n.Name, phaseBackward), Accesses: []dag.Access{updates(grad.Buffer, box), later.readsGradient(j, box)},
					}
				})
			}
		}
	}
}
