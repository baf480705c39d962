package nn

import (
	"slices"

	"dahl/dag"
	"dahl/kernels/calls"
)

// group is the layers that one kind of task computes: a single layer, or the
// layers of a pattern. The first one names the tasks and gives them its granularity.
type group struct {
	*Stage            // the first one; with an add its inputs are the group's
	relu, pool *Stage // fused after it; nil: not fused
	norm       *Stage // of a convolution that an evaluation also normalises
	add        *Stage // what is normalised is added to another input, the second one of the group
	end        *Stage // the last one
	stages     []int  // the indices of all

	with calls.Attributes // of the operation of the first one, by which it computes others
}

// pattern is layers that one kind of task computes where each is the only reader of the one before.
//
// A fused ReLU keeps no mask. Its output is 0 exactly where no gradient passes, so the layers that
// read it stop their input gradients there. So all of these have to be of kinds whose input
// gradient can do that, or the ReLU stays a task of its own, as before the loss or an average. A
// pooling after the ReLU knows from its own output where no gradient passes.
//
// A batch normalisation computes the sign of its output again from its input, or reads its output, so that any layer
// may read what a ReLU behind it gives.
type pattern struct {
	kinds   []string
	with    calls.Attributes // of the operation of the first layer; what else is fused is a parameter or an operand of it
	readers []string         // kinds that may read the output; nil: any
	eval    bool             // of evaluations alone

	fits func(m *Model, stages []int) bool // whether there is an operation for these layers; nil: always
}

// patterns are tried in order.
var patterns = []pattern{
	{kinds: []string{"conv2d", "batchnorm", "relu"}, eval: true},
	{kinds: []string{"conv2d", "batchnorm"}, eval: true},
	{kinds: []string{"conv2d", "relu", "maxpool"}, with: calls.Pool, fits: pooled},
	{kinds: []string{"conv2d", "relu"}, readers: []string{"conv2d", "dense"}},
	{kinds: []string{"batchnorm", "add", "relu"}, fits: joined},
	{kinds: []string{"batchnorm", "relu"}},
	{kinds: []string{"dense", "relu"}, with: calls.ReLU, readers: []string{"dense"}},
}

// pooled reports whether an operation joins a convolution with the pooling of its output.
func pooled(m *Model, stages []int) bool {
	conv, pool := m.Stages[stages[0]].Layer.(Conv2D), m.Stages[stages[2]].Layer.(MaxPool)
	return conv.groups() == 1 && pool.plain()
}

// joined reports whether a batch normalisation is added to one other value, which is there before it. The gradient of the
// sum is that of the other value, too. It is made where the gradient of the ReLU's output was, which must
// not be that of a further sum.
func joined(m *Model, stages []int) bool {
	add, relu := &m.Stages[stages[1]], &m.Stages[stages[2]]
	if len(add.Inputs) != 2 || add.Inputs[0] == add.Inputs[1] || m.beside(add, stages[0]) >= stages[0] {
		return false
	}
	return slices.ContainsFunc(relu.readers, func(r reader) bool { return !m.Stages[r.stage].Traits.Passes })
}

// beside is the other input of a sum of two.
func (m *Model) beside(add *Stage, stage int) int {
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

// written is the layer whose whole output, or whose output's gradient, is in memory. Where no
// gradient of the input is needed, that is the pooling: the convolution's output is never in
// memory. Other groups also need the gradient of the convolution's output, for that of their input.
func (m *Model) written(g *group) *Stage {
	if g.pool != nil && !m.inputLearns(g.Stage) {
		return g.pool
	}
	return g.Stage
}

// groups partitions the layers of a training step, in the order of their first ones.
func (m *Model) groups(l *dag.Lowering) []group { return m.groupsOf(l, true, false) }

// groupsOf are those of a training step or of an evaluation, or each layer alone.
func (m *Model) groupsOf(l *dag.Lowering, train, alone bool) []group {
	var all []group
	fused := make([]bool, len(m.Stages))
	for i := range m.Stages {
		if fused[i] {
			continue
		}
		g := group{Stage: &m.Stages[i], stages: []int{i}}
		if !alone {
			g.stages, g.with = m.match(i, l, train)
		}
		g.end = &m.Stages[g.stages[len(g.stages)-1]]
		for _, s := range g.stages[1:] {
			fused[s] = true
			*g.behind(m.Stages[s].Layer.Kind()) = &m.Stages[s]
		}
		if g.add != nil {
			m.joins(&g, i)
		}
		all = append(all, g)
	}
	return all
}

// behind is where the group has a layer of a kind that a pattern fuses behind the first.
func (g *group) behind(kind string) **Stage {
	return map[string]**Stage{"relu": &g.relu, "maxpool": &g.pool, "batchnorm": &g.norm, "add": &g.add}[kind]
}

// joins adds the other input of the sum that a group computes.
func (m *Model) joins(g *group, first int) {
	both := *g.Stage
	both.Inputs = append(slices.Clone(both.Inputs), m.beside(g.add, first))
	both.In = append(slices.Clone(both.In), g.add.In[0])
	g.Stage = &both
}

// Unfused names the layers that a lowering leaves by themselves because the layer before them, or one that
// reads them, is cut along a dimension over which it sums.
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

// match lists the stages of the first pattern that begins at a stage, with its attributes, or the stage alone.
func (m *Model) match(first int, l *dag.Lowering, train bool) ([]int, calls.Attributes) {
	for _, p := range patterns {
		stages := m.along(first, p.kinds)
		if stages == nil || p.eval && train || m.Stages[first].sumsInputs(l) {
			continue
		}
		last := &m.Stages[stages[len(stages)-1]]
		if p.fits != nil && !p.fits(m, stages) {
			continue
		}
		if p.readers == nil || m.readBy(last, func(s *Stage) bool { return slices.Contains(p.readers, s.Layer.Kind()) && !s.sumsOutputs(l) }) {
			return stages, p.with
		}
	}
	return []int{first}, 0
}

// sumsInputs reports whether tasks of the layer have some of its inputs each. A ReLU has to wait until their sum is complete.
func (s *Stage) sumsInputs(l *dag.Lowering) bool {
	tile := l.Of(s.Name).Forward.Inputs
	return !s.Traits.Grouped && clip(tile, s.In[0][0]) < s.In[0][0]
}

// sumsOutputs reports whether tasks of the input gradient have some of the layer's outputs each. Such tasks cannot stop the
// gradient at the zeros of a ReLU before the layer.
func (s *Stage) sumsOutputs(l *dag.Lowering) bool {
	ll := granularity(l.Of(s.Name), 1, s.In[0], s.Out)
	return ll.InputGradient.Outputs < s.Out[0] && !s.Traits.Grouped
}

// along lists the stages of these kinds from a stage on, each the only reader of the one before;
// nil if there are none.
func (m *Model) along(stage int, kinds []string) (stages []int) {
	for i, kind := range kinds {
		if i > 0 {
			readers := m.Stages[stage].readers
			if len(readers) != 1 {
				return nil
			}
			stage = readers[0].stage
		}
		if m.Stages[stage].Layer.Kind() != kind {
			return nil
		}
		stages = append(stages, stage)
	}
	return stages
}

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
