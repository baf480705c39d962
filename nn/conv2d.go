package nn

import (
	"fmt"

	"dahl/dag"
)

// Conv2D is a convolution (cross-correlation, as PyTorch's) with square kernels,
// with w of shape (filters, channels, kernel, kernel). A Stride of 0 means 1.
type Conv2D struct {
	Filters, Kernel, Pad, Stride int
	NoBias                       bool
}

// Kind implements [Layer].
func (Conv2D) Kind() string { return "conv2d" }

// Output implements [Layer].
func (c Conv2D) Output(in []int) ([]int, error) {
	if len(in) != 3 {
		return nil, fmt.Errorf("a convolution needs C×H×W")
	}
	if c.Filters < 1 {
		return nil, fmt.Errorf("%d filters; want at least 1", c.Filters)
	}
	if c.Pad < 0 || c.Pad > maxExtent {
		return nil, fmt.Errorf("pad %d; want 0 to %d", c.Pad, maxExtent)
	}
	h, err := windows(in[1], c.Kernel, c.Pad, c.stride())
	if err != nil {
		return nil, err
	}
	w, err := windows(in[2], c.Kernel, c.Pad, c.stride())
	return []int{c.Filters, h, w}, err
}

func (c Conv2D) stride() int { return max(c.Stride, 1) }

// windows is the number of positions of a window along one dimension.
func windows(extent, size, pad, stride int) (int, error) {
	if size < 1 || stride < 1 {
		return 0, fmt.Errorf("window %d, stride %d; want at least 1", size, stride)
	}
	if size > extent+2*pad {
		return 0, fmt.Errorf("window %d is larger than the input, %d with padding", size, extent+2*pad)
	}
	return (extent+2*pad-size)/stride + 1, nil
}

// Params implements [Layer].
func (c Conv2D) Params(in []int) []Parameter {
	fanIn := in[0] * c.Kernel * c.Kernel
	p := []Parameter{{Name: "weight", Shape: []int{c.Filters, in[0], c.Kernel, c.Kernel}, FanIn: fanIn}}
	if !c.NoBias {
		p = append(p, Parameter{Name: "bias", Shape: []int{c.Filters}, FanIn: fanIn})
	}
	return p
}

func (c Conv2D) flops(in, out []int) float64 {
	return 2 * float64(elems(out)) * float64(in[0]*c.Kernel*c.Kernel)
}

func (c Conv2D) forward(l *lowerer, n *node) {
	n.params = dag.Params{{Name: "pad", Value: float64(c.Pad)}, {Name: "stride", Value: float64(c.stride())}}
	l.output(n)
	n.eachTile(n.out.shape, func(t tile) {
		l.weightedForward(n, "conv2d", t)
	})
}

func (c Conv2D) backward(l *lowerer, n *node) {
	l.weightGradients(n, "conv2d.dw")
	l.inputGradient(n, "conv2d.dx")
}
