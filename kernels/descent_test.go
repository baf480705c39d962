package kernels_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/kernels"
	"dahl/kernels/calls"
	"dahl/kernels/kerneltest"
	"dahl/must"
)

// descentCase is the gradient of weights of some shape with its step of gradient descent, and the operations that compute it in parts.
type descentCase struct {
	op       string
	with     calls.Attributes // beside SGD
	geometry dag.Params
	weights  []int
	inputs   [][]int // the operands of which the gradient is made

	gradient []int   // the shape of the gradient by itself
	alone    [][]int // the shapes of inputs for it; nil: inputs
	turn     string  // the operation that turns it to the order of the weights, "": it has that order
	turned   []int   // the shape that turn reads; nil: gradient
}

// TestDescentIsItsParts: every variant changes weights, biases and velocities as the same variant of the
// gradient, then the one that turns it to PyTorch's order and then sgd do, bit for bit, in whole buffers and in regions of larger ones.
// So do the steps without a bias.
func TestDescentIsItsParts(t *testing.T) {
	rng := rand.New(rand.NewPCG(29, 31))
	steps := []dag.Params{
		kerneltest.SGDParams(0, 0, 0), kerneltest.SGDParams(0, 0, 0.01), kerneltest.SGDParams(0.9, 0, 0.01), kerneltest.SGDParams(0.9, 1, 0.01),
	}
	for i, c := range descentCases() {
		for _, real := range typesOf(i) {
			for margin := range 2 {
				if margin > 0 && c.with.Has(calls.Mapped) {
					continue // the parts take a map without gaps
				}
				for _, step := range []dag.Params{steps[i%4], steps[3-i%4]} {
					c.compare(t, rng, real, margin, step)
				}
			}
		}
	}
}

// descentCases have blocks of every kind. Of 37 rows of 4127 columns gradientBytes holds 1728 of float32, of 3 rows of 43691 it holds
// 21824; parts of dw must be summed as the whole is. Filters are fewer than turnedFilters, as many, and no
// multiple of them; those of the first geometry share vectors.
func descentCases() (all []descentCase) {
	for _, e := range [][3]int{{1, 1, 1}, {7, 3, 5}, {3, 37, 4127}, {2, 3, 43691}, {67, 17, 31}, {257, 10, 43}} { // n, o, c
		w := []int{e[1], e[2]}
		all = append(all, descentCase{op: "dense.dw", weights: w, inputs: [][]int{{e[0], e[1]}, {e[0], e[2]}}, gradient: w})
	}
	for _, e := range [][5]int{{1, 1, 1, 1, 1}, {7, 3, 5, 2, 11}, {67, 10, 13, 11, 4}, {31, 17, 3, 5, 37}} { // n, o, h, w, c
		n, o, h, w, c := e[0], e[1], e[2], e[3], e[4]
		all = append(all, descentCase{
			op: "dense.dw", with: calls.Mapped, weights: []int{o, c, h, w}, inputs: [][]int{{n, o}, {n, h, w, c}},
			gradient: []int{o, h * w * c}, alone: [][]int{{n, o}, {n, h * w * c}}, turn: "nchw", turned: []int{o, h, w, c},
		})
	}
	for _, g := range [][10]int{ // n, c, h, w, f, k, pad, stride, size, step
		{3, 1, 29, 31, 5, 5, 2, 1, 2, 2},
		{2, 7, 13, 11, 16, 3, 1, 1, 2, 2},
		{2, 5, 17, 19, 37, 3, 0, 2, 3, 2},
		{5, 41, 7, 3, 67, 1, 1, 1, 1, 2},
	} {
		f := newFusedCase(g)
		c := descentCase{op: "conv2d.nhwc.dw", geometry: f.conv, weights: []int{g[4], g[1], g[5], g[5]}, inputs: [][]int{f.y, f.x}, gradient: f.w, turn: "oihw"}
		all = append(all, c)
		c.with, c.geometry, c.inputs = calls.Pool, f.fused, [][]int{f.pooled, f.pooled, f.x}
		all = append(all, c)
	}
	return all
}

func (c *descentCase) compare(t *testing.T, rng *rand.Rand, real dag.DType, margin int, step dag.Params) {
	t.Helper()
	call := func(op string, params dag.Params, shapes [][]int, values ...[]float64) *kerneltest.Case {
		k, _ := kernels.KernelByName(op)
		s := kerneltest.New(k, real, shapes, kerneltest.FirstModes(k)[:len(shapes)], params, margin)
		must.Do(t, kernels.Validate(&s.Spec))
		s.Fill(rng)
		for i, v := range values {
			if v != nil {
				s.Set(i, func(j int) float64 { return v[j] })
			}
		}
		return s
	}
	bias, hyper := c.weights[:1], 1+len(c.inputs)
	s := call(kernels.Written(c.op, c.with|calls.SGD), slices.Concat(c.geometry, step), slices.Concat([][]int{c.weights}, c.inputs, [][]int{{2}, bias, c.weights, bias}))
	values := [][]float64{nil}
	for i := range c.inputs {
		values = append(values, s.Values(1+i))
	}
	for v := range s.Kernel.Variants {
		variant := &s.Kernel.Variants[v]
		if !s.Runs(variant) {
			continue
		}
		run := func(c *kerneltest.Case) *kerneltest.Case {
			c.Run(likeVariant(c.Kernel, variant.Name))
			return c
		}
		fused := run(s.Clone())
		compareWithoutBias(t, s, fused, v)
		alone := c.inputs
		if c.alone != nil {
			alone = c.alone
		}
		grads := run(call(kernels.Written(c.op, c.with&^calls.Mapped), c.geometry, slices.Concat([][]int{c.gradient}, alone, [][]int{bias}), values...))
		turned := grads
		if c.turn != "" {
			from := c.gradient
			if c.turned != nil {
				from = c.turned
			}
			turned = run(call(c.turn, nil, [][]int{c.weights, from}, nil, grads.Values(0)))
		}
		for i, g := range [][]float64{turned.Values(0), grads.Values(1 + len(c.inputs))} {
			parameter, velocity := []int{0, hyper + 1}[i], hyper+2+i
			shape := s.Spec.Operands[parameter].Shape
			stepped := run(call("sgd", step, [][]int{shape, shape, {2}, shape}, s.Values(parameter), g, s.Values(hyper), s.Values(velocity)))
			name := variant.Name + " " + s.Kernel.Op + " " + s.Spec.Key()
			compareBits(t, name, fused.Values(parameter), stepped.Values(0))
			compareBits(t, name, fused.Values(velocity), stepped.Values(3))
		}
	}
}

// compareWithoutBias checks that a variant of the operation without a bias changes weights and velocities as that with one did.
func compareWithoutBias(t *testing.T, before, after *kerneltest.Case, variant int) {
	t.Helper()
	alone := before.WithoutBias()
	v := &alone.Kernel.Variants[variant]
	alone.Run(v)
	for _, name := range []string{"w", "vw"} {
		compareBits(t, v.Name+" "+alone.Kernel.Op+" "+alone.Spec.Key(), alone.Values(alone.Operand(name)), after.Values(after.Operand(name)))
	}
}

// likeVariant is the variant of a name, or the one of its level where an operation has no other.
func likeVariant(k *kernels.Kernel, name string) *calls.Variant {
	v, ok := k.Variant(name)
	if !ok {
		v, _ = k.Variant(strings.TrimPrefix(name, "winograd-"))
	}
	return v
}

func compareBits(t *testing.T, op string, got, want []float64) {
	t.Helper()
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("%s: element %d is %v, the operations one after the other give %v", op, i, got[i], want[i])
		}
	}
}
