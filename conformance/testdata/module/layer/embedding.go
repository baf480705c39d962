package main

import (
	"fmt"

	"dahl/dag"
	"dahl/kernels"
	"dahl/kernels/calls"
	"dahl/nn"
)

// grey says which of so many greys each number from 0 to 1 is.
type grey struct{ Of int }

func (grey) Kind() string                       { return "grey" }
func (grey) Traits() nn.Traits                  { return nn.Traits{Integers: true} }
func (grey) Flops(_ [][]int, out []int) float64 { return float64(out[0]) }
func (grey) Output(in [][]int) ([]int, error)   { return in[0], nil }
func (g grey) Forward(n *nn.Node) {
	n.Tiles("grey", dag.Params{{Name: "of", Value: float64(g.Of)}}, n.Output(), n.Input(0))
}
func (grey) Backward(*nn.Node) {}

// embedding gives each whole number of a vector its row of a table: a vector of T becomes T×D.
type embedding struct{ Words, Width int }

func (embedding) Kind() string { return "embedding" }

func (e embedding) Output(in [][]int) ([]int, error) {
	if len(in) != 1 || len(in[0]) != 1 {
		return nil, fmt.Errorf("an embedding needs a vector")
	}
	return []int{in[0][0], e.Width}, nil
}

func (e embedding) Params([][]int) []nn.Parameter {
	return []nn.Parameter{{Name: "weight", Shape: []int{e.Words, e.Width}, FanIn: e.Width}}
}

func (embedding) Flops([][]int, []int) float64 { return 0 }

func (embedding) Forward(n *nn.Node) {
	n.Tiles("words", nil, n.Output(), n.Input(0), n.Param(0))
}

func (embedding) Backward(n *nn.Node) {
	n.Tiles("words.dw", nil, n.ParamGrad(0), n.OutputGrad(), n.Input(0))
}

func (embedding) Kernels() []kernels.Kernel {
	words := kernels.Operand{Name: "i", Kind: kernels.Index, Dims: "n t", Modes: []dag.Mode{dag.Read}, Values: kernels.Values{Below: "v"}}
	greys := kernels.Operand{Name: "y", Kind: kernels.Index, Dims: "n t", Modes: []dag.Mode{dag.Write}}
	return []kernels.Kernel{
		{Op: "grey", PerPoint: 1, Params: []string{"of"}, Variants: ref(greyOf[float32], greyOf[float64]), Operands: []kernels.Operand{greys, reads("x", "n t")}},
		{Op: "words", Whole: "v", Variants: ref(embed[float32], embed[float64]), Operands: []kernels.Operand{
			writes("y", "n t d"), words, reads("w", "v d")}},
		{Op: "words.dw", Whole: "v d", Variants: ref(embedDw[float32], embedDw[float64]), Operands: []kernels.Operand{
			sums("dw", "v d"), reads("dy", "n t d"), words}},
	}
}

func greyOf[T calls.Float](c *calls.Call) {
	calls.EachRun(&c.Args[0], &c.Args[1], &c.Args[1], func(y []int32, x, _ []T) {
		for i, v := range x {
			y[i] = min(int32(float64(v)*c.Params[0]), int32(c.Params[0])-1)
		}
	})
}

// eachWord visits each number of a vector with its row of a sample, and the row of the table.
func eachWord[T calls.Float](c *calls.Call, words, rows, table int, visit func(row, of []T)) {
	i, y, w := &c.Args[words], &c.Args[rows], &c.Args[table]
	for n := range i.Shape[0] {
		for t := range i.Shape[1] {
			word := int(calls.Data[int32](i)[n*i.Stride[0]+t])
			visit(calls.Data[T](y)[n*y.Stride[0]+t*y.Stride[1]:][:y.Shape[2]], calls.Data[T](w)[word*w.Stride[0]:])
		}
	}
}

func embed[T calls.Float](c *calls.Call) {
	eachWord(c, 1, 0, 2, func(row, of []T) { copy(row, of) })
}

func embedDw[T calls.Float](c *calls.Call) {
	begun[T](&c.Args[0])
	eachWord(c, 2, 1, 0, func(row, sum []T) {
		for i, g := range row {
			sum[i] += g
		}
	})
}
