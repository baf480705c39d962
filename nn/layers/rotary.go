package layers

import (
	"cmp"
	"fmt"

	"dahl/dag"
	"dahl/nn"
)

// Rotary turns the features of the first heads of a sequence by angles that grow with the position, the queries and the keys in front of an
// [Attention]. What lies behind them, the values, stays. kernels/tokens.go has the equations.
type Rotary struct {
	Heads int     // that are turned
	Width int     // features of a head, an even number
	Base  float64 // Zero means 10000.
}

const defaultBase = 10000

// Kind implements [nn.Layer].
func (Rotary) Kind() string { return "rotary" }

// Share implements [nn.Sharer].
func (r Rotary) Share(n int) (nn.Layer, error) {
	heads, err := share("heads", r.Heads, n)
	r.Heads = heads
	return r, err
}

// Output implements [nn.Layer].
func (r Rotary) Output(in [][]int) ([]int, error) {
	shape, err := oneSequence(in, "rotary positions")
	switch {
	case err != nil:
		return nil, err
	case r.Heads < 1 || r.Width < 2 || r.Width%2 == 1 || r.Base < 0:
		return nil, fmt.Errorf("%d heads of width %d, base %g; want at least one head of an even width", r.Heads, r.Width, r.Base)
	case r.Heads*r.Width > shape[1]:
		return nil, fmt.Errorf("%d heads of width %d of %d features", r.Heads, r.Width, shape[1])
	}
	return shape, nil
}

// Flops implements [nn.Layer].
func (r Rotary) Flops(in [][]int, _ []int) float64 { return 3 * float64(in[0][0]*r.Heads*r.Width) }

// table is the cosines and sines of all positions.
func (r Rotary) table(n *nn.Node) nn.Operand {
	return n.Buffer(dag.Buffer{Name: n.Name + ".table", Shape: []int{n.Out[0], r.Width}, Type: n.Type()})
}

// Forward implements [nn.Layer].
func (r Rotary) Forward(n *nn.Node) {
	n.Step(".table", "rotary.table", dag.Params{{Name: "base", Value: cmp.Or(r.Base, defaultBase)}}, r.table(n))
	r.turn(n, n.Output(), n.Input(0), false)
}

// Backward implements [nn.Layer].
func (r Rotary) Backward(n *nn.Node) { r.turn(n, n.InputGrad(0), n.OutputGrad(), true) }

func (r Rotary) turn(n *nn.Node, to, from nn.Operand, back bool) {
	var params dag.Params
	if r.Heads > 1 {
		params = dag.Params{{Name: "heads", Value: float64(r.Heads)}}
	}
	turned, all := dag.Range{Hi: r.Heads * r.Width}, n.Out[1]
	n.Tiles("rotary", append(params, nn.Flag("back", back)), n.Part(to, turned), n.Part(from, turned), r.table(n))
	if turned.Hi < all {
		rest := dag.Range{Lo: turned.Hi, Hi: all}
		n.Tiles("copy", nil, n.Part(to, rest), n.Part(from, rest))
	}
}
