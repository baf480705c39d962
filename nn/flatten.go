package nn

// Flatten turns C×H×W into a vector. It is a view of its input, and the gradient
// of its output is a view of the gradient of its input: no task, no copy.
type Flatten struct{}

// Kind implements [Layer].
func (Flatten) Kind() string { return "flatten" }

// Output implements [Layer].
func (Flatten) Output(in []int) ([]int, error) { return []int{elems(in)}, nil }

// Params implements [Layer].
func (Flatten) Params([]int) []Parameter { return nil }

func (Flatten) flops(_, _ []int) float64 { return 0 }

func (Flatten) forward(l *lowerer, n *node) {
	n.out.value = l.b.View(n.Name+".out", n.in.value, n.out.shape...)
	if n.in.grad != none {
		n.out.grad = l.b.View("grad."+n.Name+".out", n.in.grad, n.out.shape...)
	}
}

func (Flatten) backward(*lowerer, *node) {}
