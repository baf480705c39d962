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
	return p.pooled(in)
}

// Params implements [Layer].
func (MaxPool) Params([]int) []Parameter { return nil }

func (p MaxPool) flops(_, out []int) float64 { return float64(elems(out) * p.Size * p.Size) }

func (MaxPool) layout(chosen, _ string) string { return chosen }

func (p MaxPool) params() dag.Params {
	size := float64(p.Size)
	return append(sliding(p.stride(), 0), dag.Param{Name: "height", Value: size}, dag.Param{Name: "width", Value: size})
}

func (p MaxPool) stride() int {
	if p.Stride == 0 {
		return p.Size
	}
	return p.Stride
}

// op is the operation in a layout. That of the gradient has ".dx" behind it.
func (MaxPool) op(layout string) string {
	if layout == dag.NHWC {
		return "maxpool.nhwc"
	}
	return "maxpool"
}

func (p MaxPool) forward(l *lowerer, n *node) {
	n.params = p.params()
	l.output(n)
	n.saved = l.buffer(n.Name+".index", dag.Uint8, dag.Activation, n.out.shape)
	n.eachTile(&n.out, func(t tile) {
		y := n.out.box(t)
		l.task(n, phaseForward, p.op(n.out.layout), n.params, t, writes(n.out.value, y), writes(n.saved, y), reads(n.in.value, n.in.box(t)))
	})
}

func (p MaxPool) backward(l *lowerer, n *node) {
	if n.in.grad == none {
		return
	}
	n.eachTile(&n.in, func(t tile) {
		y := n.out.box(t)
		l.task(n, phaseBackward, p.op(n.out.layout)+".dx", n.params, t, writes(n.in.grad, n.in.box(t)), reads(n.out.grad, y), reads(n.saved, y))
	})
}

// pooled is the output shape of a pooling layer.
func (p MaxPool) pooled(in []int) ([]int, error) {
	if len(in) != 3 {
		return nil, fmt.Errorf("pooling needs C×H×W")
	}
	h, err := windows(in[1], p.Size, 0, p.stride())
	if err != nil {
		return nil, err
	}
	w, err := windows(in[2], p.Size, 0, p.stride())
	return []int{in[0], h, w}, err
}
