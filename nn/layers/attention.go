package layers

import (
	"cmp"
	"fmt"
	"slices"

	"dahl/dag"
	"dahl/nn"
)

// Attention is scaled dot-product attention among the positions of a sequence. Its input has the queries of all heads, then the keys and then the
// values, as a dense layer computes them: T×(Heads + 2·KeyHeads)·D. Its output is T×Heads·D. A second input, a [Mask], hides positions from all.
// kernels/attention.go has the equations.
type Attention struct {
	Heads    int
	KeyHeads int  // of keys and values, a divisor of Heads: as many heads of queries share each. Zero means Heads.
	Causal   bool // whether a position sees itself and those before it, or all
	Window   int  // the number of positions that a position sees to each side, itself among them. Zero means all.

	// Dropout is the probability that a training step takes a weight of a key for 0. The others count 1/(1-Dropout) times. It draws by [nn.Node.Keys].
	Dropout float64
}

// Kind implements [nn.Layer].
func (Attention) Kind() string { return "attention" }

// Prefix is how automatic names begin.
func (Attention) Prefix() string { return "attn" }

// Traits says that the input has blocks: queries, keys and values of all heads.
func (a Attention) Traits() nn.Traits {
	return nn.Traits{Blocks: []int{max(1, a.Heads), max(1, a.keyHeads()), max(1, a.keyHeads())}}
}

func (a Attention) keyHeads() int { return cmp.Or(a.KeyHeads, a.Heads) }

// Share implements [nn.Sharer].
func (a Attention) Share(n int) (nn.Layer, error) {
	heads, err := share("heads", a.Heads, n)
	keyHeads, keyErr := share("heads of keys", a.keyHeads(), n)
	a.Heads, a.KeyHeads = heads, keyHeads
	return a, cmp.Or(err, keyErr)
}

// Output implements [nn.Layer].
func (a Attention) Output(in [][]int) ([]int, error) {
	shape, err := oneSequence(in[:min(len(in), 1)], "positions that attend to each other")
	switch {
	case err != nil:
		return nil, err
	case len(in) > 2 || len(in) == 2 && !slices.Equal(in[1], shape[:1]):
		return nil, fmt.Errorf("want a sequence, and perhaps a mask with a number for each of its %d positions", shape[0])
	}
	if a.Heads < 1 || a.KeyHeads < 0 || a.Heads%a.keyHeads() > 0 || a.Window < 0 {
		return nil, fmt.Errorf("%d heads, %d of keys, window %d; want at least one head, and for each head of keys as many of queries", a.Heads, a.KeyHeads, a.Window)
	}
	if !(a.Dropout >= 0 && a.Dropout <= 1) {
		return nil, fmt.Errorf("attention_dropout %g; want a probability from 0 to 1", a.Dropout)
	}
	all := a.Heads + 2*a.keyHeads()
	if shape[1]%all > 0 {
		return nil, fmt.Errorf("%d features for the queries, keys and values of %d heads; want a multiple of %d", shape[1], a.Heads, all)
	}
	return []int{shape[0], shape[1] / all * a.Heads}, nil
}

// Flops implements [nn.Layer]: two products for each pair of positions of which one sees the other.
func (a Attention) Flops(_ [][]int, out []int) float64 {
	window, past := a.window(out[0])
	pairs := 0
	for t := range out[0] {
		pairs += min(out[0], t-past+window) - max(0, t-past)
	}
	return float64(pairs) * (4*float64(out[1]) + 10*float64(a.Heads))
}

// window is how many positions a position sees, and how many of these lie before it, as far as they are there.
func (a Attention) window(positions int) (window, past int) {
	side := positions
	if a.Window > 0 {
		side = min(side, a.Window)
	}
	if a.Causal {
		return side, side - 1
	}
	return 2*side - 1, side - 1
}

func (a Attention) params(n *nn.Node) dag.Params {
	window, past := a.window(n.Out[0])
	return append(a.heads(), dag.Param{Name: "window", Value: float64(window)}, dag.Param{Name: "past", Value: float64(past)})
}

func (a Attention) heads() (p dag.Params) {
	if a.keyHeads() > 1 {
		p = append(p, dag.Param{Name: "heads", Value: float64(a.keyHeads())})
	}
	if group := a.Heads / a.keyHeads(); group > 1 {
		p = append(p, dag.Param{Name: "group", Value: float64(group)})
	}
	return p
}

// parts are queries, keys and values.
func (a Attention) parts(n *nn.Node, of nn.Operand) []nn.Operand {
	queries := n.Out[1]
	keys := queries / a.Heads * a.keyHeads()
	return []nn.Operand{
		n.Part(of, dag.Range{Hi: queries}),
		n.Part(of, dag.Range{Lo: queries, Hi: queries + keys}),
		n.Part(of, dag.Range{Lo: queries + keys, Hi: queries + 2*keys}),
	}
}

// byQuery is a buffer of a number for each head of each position.
func (a Attention) byQuery(n *nn.Node, name string, of dag.DType) nn.Operand {
	return n.Buffer(dag.Buffer{Name: name, Shape: []int{n.Samples(), a.Heads, n.Out[0]}, Type: of}, dag.AlongSamples, dag.AlongInputs, dag.AlongRows)
}

// Forward implements [nn.Layer].
func (a Attention) Forward(n *nn.Node) {
	if a.drops(n) {
		n.Step(".rows", "dropout.rows", nil, a.rows(n), n.Keys())
	}
	a.step(n, "", "", append([]nn.Operand{n.Output(), a.byQuery(n, n.Name+".log", n.Type())}, a.parts(n, n.Input(0))...))
}

func (a Attention) drops(n *nn.Node) bool { return a.Dropout > 0 && n.Trains() }

// rows are the keys by which queries draw.
func (a Attention) rows(n *nn.Node) nn.Operand { return a.byQuery(n, n.Name+".rows", dag.Int64) }

// step adds the tasks of the attention, or of a gradient of it, with what all of them read behind their operands.
func (a Attention) step(n *nn.Node, name, gradient string, operands []nn.Operand) {
	op, params := "attention", a.params(n)
	if a.drops(n) {
		op, params, operands = "attention.drop", append(params, dag.Param{Name: "p", Value: a.Dropout}), append(operands, a.rows(n))
	}
	if len(n.In) == 2 {
		operands = append(operands, n.Input(1)) // a mask
	}
	n.Step(name, op+gradient, params, operands...)
}

// Backward implements [nn.Layer].
func (a Attention) Backward(n *nn.Node) {
	x, dx := a.parts(n, n.Input(0)), a.parts(n, n.InputGrad(0))
	log, along := a.byQuery(n, n.Name+".log", n.Type()), a.byQuery(n, "grad."+n.Name+".along", n.Type())
	n.Step(".along", "attention.along", a.heads(), along, n.OutputGrad(), n.Output())
	if n.MeetsAll() {
		a.step(n, ".queries", ".dx", []nn.Operand{dx[0], dx[1], dx[2], n.OutputGrad(), x[0], x[1], x[2], log, along})
		return
	}
	a.step(n, ".queries", ".dq", []nn.Operand{dx[0], n.OutputGrad(), x[0], x[1], x[2], log, along})
	a.step(n, ".keys", ".dkv", []nn.Operand{dx[1], dx[2], n.OutputGrad(), x[0], x[1], x[2], log, along})
}
