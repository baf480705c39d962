package nn

import (
	"reflect"
	"slices"

	"dahl/dag"
)

// group is the layers that one kind of task computes: a single layer, or the
// layers of a pattern. The first one names the tasks and gives them its granularity.
type group struct {
	*Stage            // the first one; with an add its inputs are the group's
	relu, pool *Stage // fused after it. Nil means not fused.
	function   *Stage // likewise
	norm       *Stage // of a convolution that an evaluation also normalises
	add        *Stage // what is normalised is added to another input, the second one of the group
	end        *Stage // the last one
	stages     []int  // the indices of all
}

// joined reports whether a sum among fused layers adds one other value, which is there before it. The gradient of the sum
// is the gradient of the other value, too. It takes the place of the gradient of the ReLU's output, so that one must not
// be the gradient of a further sum.
func (m *Model) joined(stages []int) bool {
	sum := slices.IndexFunc(stages, func(s int) bool { return m.Stages[s].Traits.Passes })
	if sum < 1 {
		return true
	}
	add, last := &m.Stages[stages[sum]], &m.Stages[stages[len(stages)-1]]
	if len(add.Inputs) != 2 || add.Inputs[0] == add.Inputs[1] || m.otherInput(add, stages[sum-1]) >= stages[0] {
		return false
	}
	return slices.ContainsFunc(last.readers, func(r reader) bool { return !m.Stages[r.stage].Traits.Passes })
}

// otherInput is the input of a sum of two that is not a stage.
func (m *Model) otherInput(add *Stage, stage int) int {
	if add.Inputs[0] == stage {
		return add.Inputs[1]
	}
	return add.Inputs[0]
}

// last is the layer with the group's output.
func (g *group) last() *Stage { return g.end }

// readerOf is an input of the group as the layer that has it sees it.
func (n *Node) readerOf(input int) reader {
	if n.add == nil || input == 0 {
		return reader{n.stages[0], input}
	}
	if n.add.Inputs[0] == n.stages[0] {
		return reader{n.stages[1], 1}
	}
	return reader{n.stages[1], 0}
}

// inputOf is the inverse.
func (n *Node) inputOf(r reader) int {
	if n.add == nil {
		return r.input
	}
	return slices.Index(n.stages, r.stage)
}

// inputLearns reports whether a gradient of the group's input is needed.
func (m *Model) inputLearns(s *Stage) bool {
	return slices.ContainsFunc(s.Inputs, func(i int) bool { return i != ModelInput && m.Stages[i].learns })
}

// written is the layer of a group with its whole output, or the gradient of it, in memory. Where no
// gradient of the input is needed, that is the pooling: the convolution's output is never in
// memory. Other groups also need the gradient of the convolution's output, to compute the gradient of their input.
func (m *Model) written(g *group) *Stage {
	if g.pool != nil && !m.inputLearns(g.Stage) {
		return g.pool
	}
	return g.Stage
}

// groups partitions the layers of a training step, in the order of their first ones.
func (m *Model) groups(l *dag.Lowering) []group { return m.groupsOf(l, true, false) }

// groupsOf partitions the layers of a training step or of an evaluation, or gives each layer a group.
func (m *Model) groupsOf(l *dag.Lowering, train, alone bool) []group {
	var all []group
	fused := make([]bool, len(m.Stages))
	for i := range m.Stages {
		if fused[i] {
			continue
		}
		g := group{Stage: &m.Stages[i], stages: []int{i}}
		if !alone {
			g.stages = m.match(i, l, train)
		}
		g.end = &m.Stages[g.stages[len(g.stages)-1]]
		for _, s := range g.stages[1:] {
			fused[s] = true
			*g.fusedStage(&m.Stages[s].Traits) = &m.Stages[s]
		}
		if g.add != nil {
			m.addSummand(&g, i)
		}
		all = append(all, g)
	}
	return all
}

// fusedStage is where the group has a fused layer of some traits.
func (g *group) fusedStage(t *Traits) **Stage {
	switch {
	case t.Rectifies:
		return &g.relu
	case t.Normalises:
		return &g.norm
	case t.Passes:
		return &g.add
	case t.Pointwise:
		return &g.function
	default:
		return &g.pool
	}
}

// addSummand adds the other input of the sum that a group computes.
func (m *Model) addSummand(g *group, first int) {
	both := *g.Stage
	both.Inputs = append(slices.Clone(both.Inputs), m.otherInput(g.add, first))
	both.In = append(slices.Clone(both.In), g.add.In[0])
	g.Stage = &both
}

// Unfused names the layers that a lowering does not fuse because of a cut: the layer before them, or a reader, is cut
// along a dimension over which it sums.
func (m *Model) Unfused(l *dag.Lowering) (names []string) {
	uncut := dag.Lowering{}
	heads := map[string]bool{}
	for _, g := range m.groups(&uncut) {
		heads[g.Name] = true
	}
	for _, g := range m.groups(l) {
		if !heads[g.Name] {
			names = append(names, g.Name)
		}
	}
	return names
}

// flattensInput reports whether nothing but flattens reads the model's input.
func (m *Model) flattensInput() bool {
	return !slices.ContainsFunc(m.inputReaders, func(r reader) bool {
		return !m.Stages[r.stage].Traits.View
	})
}

// match lists the stages of the first pattern of the layer at a stage, or the stage alone.
func (m *Model) match(first int, l *dag.Lowering, train bool) []int {
	f, fuses := m.Stages[first].Layer.(Fuser)
	if !fuses || m.Stages[first].sumsInputs(l) {
		return []int{first}
	}
	for _, p := range f.Patterns() {
		stages := m.along(first, p.Behind)
		if stages == nil || p.Evaluation && train || !m.joined(stages) {
			continue
		}
		if p.Epilogue && !m.computesFunction(stages, l) {
			continue
		}
		if p.Fits != nil && !p.Fits(m.layersAt(stages[1:])) {
			continue
		}
		last := &m.Stages[stages[len(stages)-1]]
		if !p.Stops || m.readBy(last, func(s *Stage) bool { return s.Traits.Stops && !s.sumsOutputs(l) }) {
			return stages
		}
	}
	return []int{first}
}

func (m *Model) layersAt(stages []int) (layers []Layer) {
	for _, s := range stages {
		layers = append(layers, m.Stages[s].Layer)
	}
	return layers
}

// sumsInputs reports whether tasks of the layer have some of its inputs each. A ReLU has to wait until their sum is complete.
func (s *Stage) sumsInputs(l *dag.Lowering) bool {
	tile := l.Of(s.Name).Forward.Inputs
	return !s.Traits.Grouped && clip(tile, Channels(s.In[0])) < Channels(s.In[0])
}

// sumsOutputs reports whether tasks of the input gradient have some of the layer's outputs each. Such tasks cannot stop the
// gradient at the zeros of a ReLU before the layer.
func (s *Stage) sumsOutputs(l *dag.Lowering) bool {
	ll := granularity(l.Of(s.Name), 1, s.In[0], s.Out)
	return ll.InputGradient.Outputs < Channels(s.Out) && !s.Traits.Grouped
}

// along lists a stage and the stages behind it, each the only reader of the one before. Nil means that their layers are
// not of the wanted types.
func (m *Model) along(stage int, behind []Layer) []int {
	stages := []int{stage}
	for _, like := range behind {
		readers := m.Stages[stage].readers
		if len(readers) != 1 || !sameType(m.Stages[readers[0].stage].Layer, like) {
			return nil
		}
		stage = readers[0].stage
		stages = append(stages, stage)
	}
	return stages
}

func sameType(a, b Layer) bool { return reflect.TypeOf(a) == reflect.TypeOf(b) }

// readBy reports whether all layers that read the output of a stage, perhaps through views, are as
// wanted, and there is one at least.
func (m *Model) readBy(s *Stage, wanted func(*Stage) bool) bool {
	for _, r := range s.readers {
		to := &m.Stages[r.stage]
		if view := to.Traits.View; view && !m.readBy(to, wanted) || !view && !wanted(to) {
			return false
		}
	}
	return len(s.readers) > 0
}
