package layers

import (
	"cmp"
	"fmt"

	"dahl/dag"
	"dahl/nn"
)

// MaxPool is the maximum of windows. A byte per output remembers the position of the
// maximum in the window, the first among equals. A Stride of 0 means Size. Pad is the rows and
// columns on each side that windows may cover beyond the image, where no maximum is. Columns and Pads describe windows
// that are no squares, and unequal padding.
type MaxPool struct {
	Size, Stride, Pad int
	Columns           Columns
	Pads              Pads
}

// Kind implements [nn.Layer].
func (MaxPool) Kind() string { return "maxpool" }

// Prefix is how automatic names begin.
func (MaxPool) Prefix() string { return "pool" }

// maxPoolSize is the largest window whose positions fit a byte; 255 stands for no gradient.
const maxPoolSize = 15

// Output implements [nn.Layer].
func (p MaxPool) Output(in [][]int) ([]int, error) {
	for _, w := range p.Windows() {
		if w.Size > maxPoolSize {
			return nil, fmt.Errorf("window %d; at most %d, so that a position fits a byte", w.Size, maxPoolSize)
		}
	}
	return p.pooled(in)
}

// Flops implements [nn.Layer].
func (p MaxPool) Flops(_ [][]int, out []int) float64 {
	w := p.Windows()
	return float64(nn.Elems(out) * w[0].Size * w[1].Size)
}

func (p MaxPool) params() dag.Params {
	w := p.Windows()
	return append(windowParams(w), dag.Param{Name: "height", Value: float64(w[0].Size)}, dag.Param{Name: "width", Value: float64(w[1].Size)})
}

// Windows are those along rows and along columns.
func (p MaxPool) Windows() [2]Window {
	columns := p.Columns
	columns.Stride = cmp.Or(columns.Stride, p.Stride, columns.Size, p.Size)
	return windowsOf(Columns{Size: p.Size, Stride: cmp.Or(p.Stride, p.Size)}, p.Pad, columns, p.Pads)
}

// plain reports whether windows are squares, as far apart in both directions, without padding.
func (p MaxPool) plain() bool {
	w := p.Windows()
	return w[0] == w[1] && w[0].Before == 0 && w[0].After == 0
}

// poolOf is the pooling that a model file describes.
func poolOf(s Settings) MaxPool {
	p := MaxPool{}
	p.Size, p.Columns.Size = s.pair("size")
	p.Stride, p.Columns.Stride = s.pair("stride")
	p.Pad, p.Pads = s.pads("pad")
	return p
}

// Forward implements [nn.Layer].
func (p MaxPool) Forward(n *nn.Node) {
	n.Tiles("maxpool.nhwc", p.params(), n.Output(), n.Saved("index", dag.Uint8), n.Input(0))
}

// Backward implements [nn.Layer].
func (p MaxPool) Backward(n *nn.Node) {
	n.Tiles("maxpool.nhwc.dx", p.params(), n.InputGrad(0), n.OutputGrad(), n.Saved("index", dag.Uint8))
}

// pooled is the output shape of a pooling layer.
func (p MaxPool) pooled(inputs [][]int) ([]int, error) {
	in, err := oneImage(inputs, "pooling")
	if err != nil {
		return nil, err
	}
	for _, w := range p.Windows() {
		if pad := max(w.Before, w.After); min(w.Before, w.After) < 0 || 2*pad > w.Size {
			return nil, fmt.Errorf("pad %d; want 0 to %d, half of the window", pad, w.Size/2)
		}
	}
	return slid(in, in[0], p.Windows())
}
