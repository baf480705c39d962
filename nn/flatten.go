package nn

import "dahl/dag"

// Flatten turns C×H×W into a vector. It is a view of its input, and the gradient of its output is
// a view of the gradient of its input: no task, no copy. Channels that come last are brought into
// PyTorch's order of features. The cheaper copy does that: of the activations and their
// gradients, or, if a dense layer follows that has fewer outputs than the batch has samples, of
// its weights and theirs.
type Flatten struct{}

// Kind implements [Layer].
func (Flatten) Kind() string { return "flatten" }

// Output implements [Layer].
func (Flatten) Output(in []int) ([]int, error) { return []int{elems(in)}, nil }

// Params implements [Layer].
func (Flatten) Params([]int) []Parameter { return nil }

func (Flatten) flops(_, _ []int) float64 { return 0 }

func (Flatten) layout(_, in string) string { return in }

func (Flatten) forward(l *lowerer, n *node) {
	if n.in.layout == dag.NHWC && !sameInBothLayouts(n.in.sample) {
		if n.next != nil && n.next.isDenseBelow(l.opt.Batch) {
			n.out.turned = n.in.sample
		} else {
			l.convert(n, "")
		}
	}
	n.out.rectified = n.in.rectified
	n.out.value = l.b.View(n.Name+".out", n.in.value, n.out.shape...)
	if n.in.grad != none {
		name := "grad." + n.Name + ".out"
		if n.in.rectified { // the gradient before the ReLU
			name = l.b.BufferAt(n.in.grad).Name + ".flat"
		}
		n.out.grad = l.b.View(name, n.in.grad, n.out.shape...)
	}
}

// isDenseBelow reports whether the stage is a dense layer with fewer outputs.
func (s *Stage) isDenseBelow(outputs int) bool {
	d, ok := s.Layer.(Dense)
	return ok && d.Outputs < outputs
}

func (Flatten) backward(*lowerer, *node) {}
