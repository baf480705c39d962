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
	type part struct {
		n    *Node
		grad int
		rows dag.Range
	}
	var parts []part
	for _, n := range learning {
		for i := range n.grads {
			if n.Params[i].Of == "" {
				n.eachUpdate(i, func(r dag.Range) { parts = append(parts, part{n, i, r}) })
			}
		}
	}
	places := []int{len(parts)}
	squares := l.buffer("clip.squares", dag.Float64, dag.Activation, places)
	for place, p := range parts {
		of := &p.n.Params[p.grad]
		l.add(dag.Task{
			Name: fmt.Sprintf("%s.squares.%s[%s]", p.n.Name, p.n.shortName(of), rangeText(p.rows)), Op: "squares",
			Labels: labelsOf(p.n.Name, phaseUpdate), Accesses: []dag.Access{
				writes(squares, boxOf(places, dag.Range{Lo: place, Hi: place + 1})), reads(p.n.grads[p.grad], boxOf(of.Shape, p.rows)),
			},
		})
	}
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
