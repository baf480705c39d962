package nn

import "dahl/dag"

// group is the layers that one kind of task computes: a single layer or, in a fused lowering, a
// layer with weights and the layers fused after it. The first one names the tasks and gives them
// its granularity.
//
//	conv2d + relu             where the next layer with weights takes the mask; channels last only
//	conv2d + relu + maxpool   channels last only
//	dense + relu              where a dense layer takes the mask
//
// The ReLU of a group keeps no mask. Its output is 0 exactly where no gradient passes, so the
// layer that reads it stops its own input gradient there. If the reader cannot do that (the loss,
// an average), the ReLU stays a task of its own.
type group struct {
	*Stage
	relu, pool *Stage // fused after it; nil: not fused
	isFirst    bool   // of the groups with weights
}

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

// written is the layer whose whole output, or whose output's gradient, is in memory. In the first
// group with weights, that is the pooling: the convolution's output is never in memory. Later
// groups also need the gradient of the convolution's output, for the gradient of their input.
func (g *group) written() *Stage {
	if g.pool != nil && g.isFirst {
		return g.pool
	}
	return g.Stage
}

// groups partitions the layers, in order.
func (m *Model) groups(l *dag.Lowering) []group {
	var all []group
	learns := false
	for i := 0; i < len(m.Stages); {
		g := group{Stage: &m.Stages[i]}
		g.isFirst, learns = !learns && len(g.Params) > 0, learns || len(g.Params) > 0
		i++
		if l.Fused && is[ReLU](m, i) {
			switch {
			case g.isConv() && l.Layout == dag.NHWC && is[MaxPool](m, i+1):
				g.relu, g.pool = &m.Stages[i], &m.Stages[i+1]
				i += 2
			case g.takesMask(l) && m.masks(i+1, l):
				g.relu = &m.Stages[i]
				i++
			}
		}
		all = append(all, g)
	}
	return all
}

// is reports whether layer i exists and is an L.
func is[L Layer](m *Model, i int) bool {
	if i >= len(m.Stages) {
		return false
	}
	_, ok := m.Stages[i].Layer.(L)
	return ok
}

func (s *Stage) isConv() bool {
	_, ok := s.Layer.(Conv2D)
	return ok
}

// takesMask reports whether the stage's operations know a ReLU: the one of its own output and, in
// its input gradient, the one of the layer before it.
func (s *Stage) takesMask(l *dag.Lowering) bool {
	_, ok := s.Layer.(Dense)
	return ok || s.isConv() && l.Layout == dag.NHWC
}

// masks reports whether the layer that reads the output of layer i-1, perhaps through views,
// takes the mask of a ReLU.
func (m *Model) masks(i int, l *dag.Lowering) bool {
	for ; i < len(m.Stages); i++ {
		if _, ok := m.Stages[i].Layer.(Flatten); !ok {
			return m.Stages[i].takesMask(l)
		}
	}
	return false
}
