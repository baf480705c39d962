package nn

import (
	"slices"

	"dahl/dag"
)

// group is the layers that one kind of task computes: a single layer or, in a fused lowering, the
// layers of a pattern. The first one names the tasks and gives them its granularity.
type group struct {
	*Stage            // the first one
	relu, pool *Stage // fused after it; nil: not fused
	stages     []int  // the indices of all
	layout     string // in which it computes
}

// pattern is layers that one kind of task computes where each is the only reader of the one before.
//
// A fused ReLU keeps no mask. Its output is 0 exactly where no gradient passes, so the layers that
// read it stop their input gradients there. So all of these have to be of kinds whose input
// gradient can do that, or the ReLU stays a task of its own, as before the loss or an average. A
// pooling after the ReLU knows from its own output where no gradient passes.
type pattern struct {
	kinds   []string
	layout  string   // of the lowering; "": any
	readers []string // kinds that may read the output; nil: any

	fits func(first, last Layer) bool // whether there is an operation for these layers; nil: always
}

// patterns are tried in order.
var patterns = []pattern{
	{kinds: []string{"conv2d", "relu", "maxpool"}, layout: dag.NHWC, fits: pooled},
	{kinds: []string{"conv2d", "relu"}, layout: dag.NHWC, readers: []string{"conv2d", "dense"}},
	{kinds: []string{"dense", "relu"}, readers: []string{"dense"}},
}

// pooled reports whether an operation joins a convolution with the pooling of its output.
func pooled(conv, pool Layer) bool { return conv.(Conv2D).groups() == 1 && pool.(MaxPool).plain() }

// last is the layer with the group's output.
func (g *group) last() *Stage {
	switch {
	case g.pool != nil:
		return g.pool
	case g.relu != nil:
		return g.relu
	}
	return g.Stage
}

// isProduct reports whether the work of the layer is with its weights.
func (s *Stage) isProduct() bool {
	_, normalises := s.Layer.(BatchNorm)
	return len(s.Params) > 0 && !normalises
}

// outLayout is the layout of the output.
func (g *group) outLayout() string {
	if len(g.last().Out) == 1 {
		return ""
	}
	return g.layout
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

// groups partitions the layers, in the order of their first ones.
func (m *Model) groups(l *dag.Lowering) []group {
	var all []group
	fused := make([]bool, len(m.Stages))
	chosen := ""
	if l.Layout == dag.NHWC {
		chosen = dag.NHWC
	}
	layouts := map[int]string{ModelInput: m.inputLayout(chosen)} // of outputs, by stage
	for i := range m.Stages {
		if fused[i] {
			continue
		}
		g := group{Stage: &m.Stages[i], stages: m.match(i, l)}
		for _, s := range g.stages[1:] {
			fused[s] = true
			switch m.Stages[s].Layer.(type) {
			case ReLU:
				g.relu = &m.Stages[s]
			case MaxPool:
				g.pool = &m.Stages[s]
			}
		}
		g.layout = g.Layer.Layout(chosen, layouts[g.Inputs[0]])
		layouts[g.stages[len(g.stages)-1]] = g.outLayout()
		all = append(all, g)
	}
	return all
}

// Unfused names the layers that a fused lowering leaves by themselves because the layer before them, or one that
// reads them, is cut along a dimension over which it sums.
func (m *Model) Unfused(l *dag.Lowering) (names []string) {
	uncut := dag.Lowering{Layout: l.Layout, Fused: l.Fused}
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

// inputLayout is the layout in which the first reader of the model's input wants it.
func (m *Model) inputLayout(chosen string) string {
	return m.Stages[m.inputReaders[0].stage].Layer.Layout(chosen, "")
}

// match lists the stages of the first pattern that begins at a stage, or the stage alone.
func (m *Model) match(first int, l *dag.Lowering) []int {
	for _, p := range patterns {
		stages := m.along(first, p.kinds)
		if stages == nil || !l.Fused || p.layout != "" && p.layout != l.Layout || m.Stages[first].sumsInputs(l) {
			continue
		}
		last := &m.Stages[stages[len(stages)-1]]
		if p.fits != nil && !p.fits(m.Stages[first].Layer, last.Layer) {
			continue
		}
		if p.readers == nil || m.readBy(last, func(s *Stage) bool { return slices.Contains(p.readers, s.Layer.Kind()) && !s.sumsOutputs(l) }) {
			return stages
		}
	}
	return []int{first}
}

// sumsInputs reports whether tasks of the layer have some of its inputs each. A ReLU has to wait until their sum is complete.
func (s *Stage) sumsInputs(l *dag.Lowering) bool {
	tile := l.Of(s.Name).Forward.Inputs
	if s.inGroups() {
		return false
	}
	return clip(tile, s.In[0][0]) < s.In[0][0]
}

// sumsOutputs reports whether tasks of the input gradient have some of the layer's outputs each. Such tasks cannot stop the
// gradient at the zeros of a ReLU before the layer.
func (s *Stage) sumsOutputs(l *dag.Lowering) bool {
	ll := granularity(l.Of(s.Name), 1, s.In[0], s.Out)
	return ll.InputGradient.Outputs < s.Out[0] && !s.inGroups()
}

// inGroups reports whether the layer sums over the channels of a group, which no task has some of.
func (s *Stage) inGroups() bool {
	c, ok := s.Layer.(Conv2D)
	return ok && c.groups() > 1
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
		if _, view := to.Layer.(Flatten); view && !m.readBy(to, wanted) || !view && !wanted(to) {
			return false
		}
	}
	return len(s.readers) > 0
}
