package nn

import (
	"fmt"

	"dahl/dag"
)

// MaxPool is the maximum of square windows. A byte per output remembers the position of the
// maximum in the window, the first among equals. A Stride of 0 means Size. Pad is the rows and
// columns on each side that windows may cover beyond the image, where no maximum is.
type MaxPool struct{ Size, Stride, Pad int }

// Kind implements [Layer].
func (MaxPool) Kind() string { return "maxpool" }

// maxPoolSize is the largest window whose positions fit a byte; 255 stands for no gradient.
const maxPoolSize = 15

// Output implements [Layer].
func (p MaxPool) Output(in [][]int) ([]int, error) {
	if p.Size > maxPoolSize {
		return nil, fmt.Errorf("window %d; at most %d, so that a position fits a byte", p.Size, maxPoolSize)
	}
	return p.pooled(in)
}

// Params implements [Layer].
func (MaxPool) Params([][]int) []Parameter { return nil }

// Flops implements [Layer].
func (p MaxPool) Flops(_ [][]int, out []int) float64 { return float64(elems(out) * p.Size * p.Size) }

// Layout implements [Layer].
func (MaxPool) Layout(chosen, _ string) string { return chosen }

func (p MaxPool) params() dag.Params {
	size := float64(p.Size)
	return append(sliding(p.stride(), p.Pad), dag.Param{Name: "height", Value: size}, dag.Param{Name: "width", Value: size})
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

// Forward implements [Layer].
func (p MaxPool) Forward(n *Node) {
	n.Tiles(p.op(n.out.layout), p.params(), n.Output(), n.Saved("index", dag.Uint8), n.Input(0))
}

// Backward implements [Layer].
func (p MaxPool) Backward(n *Node) {
	n.Tiles(p.op(n.out.layout)+".dx", p.params(), n.InputGrad(0), n.OutputGrad(), n.Saved("index", dag.Uint8))
}

// pooled is the output shape of a pooling layer.
func (p MaxPool) pooled(inputs [][]int) ([]int, error) {
	in, err := one(inputs)
	if err != nil {
		return nil, err
	}
	if len(in) != 3 {
		return nil, fmt.Errorf("pooling needs C×H×W")
	}
	if p.Pad < 0 || 2*p.Pad > p.Size {
		return nil, fmt.Errorf("pad %d; want 0 to %d, half of the window", p.Pad, p.Size/2)
	}
	h, err := windows(in[1], p.Size, p.Pad, p.stride())
	if err != nil {
		return nil, err
	}
	w, err := windows(in[2], p.Size, p.Pad, p.stride())
	return []int{in[0], h, w}, err
}
