package nn

import (
	"fmt"

	"dahl/dag"
)

// MaxPool is the maximum of square windows. A byte per output remembers the position of the
// maximum in the window, the first among equals. A Stride of 0 means Size.
type MaxPool struct{ Size, Stride int }

// Kind implements [Layer].
func (MaxPool) Kind() string { return "maxpool" }

// maxPoolSize is the largest window whose positions fit a byte; 255 stands for no gradient.
const maxPoolSize = 15

// Output implements [Layer].
func (p MaxPool) Output(in []int) ([]int, error) {
	if p.Size > maxPoolSize {
		return nil, fmt.Errorf("window %d; at most %d, so that a position fits a byte", p.Size, maxPoolSize)
	}
	return pooled(in, p.Size, p.Stride)
}

// Params implements [Layer].
func (MaxPool) Params([]int) []Parameter { return nil }

func (p MaxPool) flops(_, out []int) float64 { return float64(elems(out) * p.Size * p.Size) }

func (MaxPool) layout(chosen, _ string) string { return chosen }

func (p MaxPool) params() dag.Params { return poolParams(p.Size, p.Stride) }

func (p MaxPool) stride() int {
	if p.Stride == 0 {
		return p.Size
	}
	return p.Stride
}

// ops are the operations of a max-pooling, forward and backward.
func (MaxPool) ops(layout string) (forward, backward string) {
	if layout == dag.NHWC {
		return "maxpool.nhwc", "maxpool.nhwc.dx"
	}
	return "maxpool", "maxpool.dx"
}

func (p MaxPool) forward(l *lowerer, n *node) {
	n.params = p.params()
	l.output(n)
	n.saved = l.buffer(n.Name+".index", dag.Uint8, dag.Activation, n.out.shape)
	op, _ := p.ops(n.out.layout)
	n.eachTile(&n.out, func(t tile) {
		y := n.out.box(t)
		l.task(n, phaseForward, op, n.params, t, writes(n.out.value, y), writes(n.saved, y), reads(n.in.value, n.in.box(t)))
	})
}

func (p MaxPool) backward(l *lowerer, n *node) {
	if n.in.grad == none {
		return
	}
	_, op := p.ops(n.out.layout)
	n.eachTile(&n.in, func(t tile) {
		y := n.out.box(t)
		l.task(n, phaseBackward, op, n.params, t, writes(n.in.grad, n.in.box(t)), reads(n.out.grad, y), reads(n.saved, y))
	})
}

// pooled is the output shape of a pooling layer.
func pooled(in []int, size, stride int) ([]int, error) {
	if len(in) != 3 {
		return nil, fmt.Errorf("pooling needs C×H×W")
	}
	if stride == 0 {
		stride = size
	}
	h, err := windows(in[1], size, 0, stride)
	if err != nil {
		return nil, err
	}
	w, err := windows(in[2], size, 0, stride)
	return []int{in[0], h, w}, err
}

func poolParams(size, stride int) dag.Params {
	if stride == 0 {
		stride = size
	}
	return dag.Params{{Name: "size", Value: float64(size)}, {Name: "stride", Value: float64(stride)}}
}
