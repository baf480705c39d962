package nn

import "dahl/dag"

// ReLU is max(x, 0). A byte per element remembers where x > 0; the gradient at
// exactly 0 is 0.
type ReLU struct{}

// Kind implements [Layer].
func (ReLU) Kind() string { return "relu" }

// Output implements [Layer].
func (ReLU) Output(in []int) ([]int, error) { return in, nil }

// Params implements [Layer].
func (ReLU) Params([]int) []Parameter { return nil }

func (ReLU) flops(in, _ []int) float64 { return float64(elems(in)) }

func (ReLU) layout(_, in string) string { return in }

func (ReLU) forward(l *lowerer, n *node) {
	l.output(n)
	n.saved = l.buffer(n.Name+".mask", dag.Uint8, dag.Activation, n.out.shape)
	n.eachTile(&n.out, func(t tile) {
		box := n.out.box(t)
		l.task(n, phaseForward, "relu", nil, t, writes(n.out.value, box), writes(n.saved, box), reads(n.in.value, box))
	})
}

func (ReLU) backward(l *lowerer, n *node) {
	if n.in.grad == none {
		return
	}
	n.eachTile(&n.in, func(t tile) {
		box := n.in.box(t)
		l.task(n, phaseBackward, "relu.dx", nil, t, writes(n.in.grad, box), reads(n.out.grad, box), reads(n.saved, box))
	})
}
