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

func (ReLU) forward(l *lowerer, n *node) {
	l.output(n)
	n.saved = l.buffer(n.Name+".mask", dag.Uint8, dag.Activation, n.out.shape)
	n.eachTile(n.out.shape, func(t tile) {
		box := t.box(n.out.shape)
		l.task(n, "forward", "relu", t, writes(n.out.value, box), writes(n.saved, box), reads(n.in.value, box))
	})
}

func (ReLU) backward(l *lowerer, n *node) {
	if n.in.grad == none {
		return
	}
	n.eachTile(n.in.shape, func(t tile) {
		box := t.box(n.in.shape)
		l.task(n, "backward", "relu.dx", t, writes(n.in.grad, box), reads(n.out.grad, box), reads(n.saved, box))
	})
}
