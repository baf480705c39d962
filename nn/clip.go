package nn

import (
	"fmt"

	"dahl/dag"
)

// clippedUpdates adds the updates of all layers with gradients clipped by their norm, all of them
// together (kernels.clipNorm has the equations).
//
// For each part of a gradient that an update reads, one task sums the squares, in a place of its own in "clip.squares".
// The task "clip" adds these places in their order and writes "clip.hyper": what
// "step.hyper" has, and the factor. So clip waits for all gradients and updates wait for clip, as the
// definition asks, and nothing else waits.
func (l *lowerer) clippedUpdates(learning []*Node) {
	places := 0
	eachPart := func(visit func(n *Node, grad int)) {
		for _, n := range learning {
			for i := range n.grads {
				if n.Params[i].Of == "" {
					visit(n, i)
				}
			}
		}
	}
	eachPart(func(n *Node, grad int) { places += n.updatesOf(grad) })
	squares, place := l.buffer("clip.squares", dag.Float64, dag.Activation, []int{places}), 0
	eachPart(func(n *Node, grad int) {
		of := &n.Params[grad]
		_, dim := l.updated(n, grad)
		l.updateTasks(n, grad, func(r dag.Range) dag.Task {
			at := dag.Range{Lo: place, Hi: place + 1}
			place = (place + 1) % places
			return dag.Task{
				Name: fmt.Sprintf("%s.squares.%s[%s]", n.Name, n.shortName(of), rangeText(r)), Op: "squares",
				Labels:   labelsOf(n.Name, phaseUpdate),
				Accesses: []dag.Access{writes(squares, boxOf([]int{places}, at)), n.readsGradient(grad, boxAt(of.Shape, dim, r))},
			}
		})
	})
	clipped := l.buffer("clip.hyper", dag.Float64, dag.Activation, []int{3})
	l.add(dag.Task{
		Name: "clip", Op: "clip", Params: dag.Params{{Name: "max_norm", Value: l.m.Defaults.ClipNorm}}, Labels: labelsOf("clip", phaseUpdate),
		Accesses: []dag.Access{writes(clipped, nil), reads(l.hyper, nil), reads(squares, nil)},
	})
	l.hyper = clipped
	for _, n := range learning {
		l.updates(n)
	}
}
