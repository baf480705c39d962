package main

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"dahl/dag"
	"dahl/execute/hardware"
	"dahl/kernels"
	"dahl/kernels/calls"
	"dahl/nn/npz"
	"dahl/train"
)

// called runs an operation in float64 on data of some shapes, all of which it may change.
func called(table []kernels.Kernel, op string, params []float64, shapes [][]int, data ...[]float64) {
	k := &table[slices.IndexFunc(table, func(k kernels.Kernel) bool { return k.Op == op })]
	c := calls.Call{Params: params}
	for i, o := range k.Operands {
		c.Args = append(c.Args, calls.Bind(unsafe.Pointer(&data[i][0]), &dag.Buffer{Shape: shapes[i], Type: dag.Float64}, nil, o.Modes[0]))
	}
	k.Variants[0].Run64(&c)
}

// TestGradients compares the gradients of x, weight and bias with central differences of L = Σ y·dy. With steps of 1e-5
// these are as far off as the third derivative times 1e-10, and what float64 rounds, 1e-16·|L|/1e-5.
func TestGradients(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	drawn := func(n int) []float64 {
		all := make([]float64, n)
		for i := range all {
			all[i] = r.NormFloat64()
		}
		return all
	}
	x, dy, weight, bias := drawn(24), drawn(24), drawn(4), drawn(4)
	dx, dw, db := drawn(24), drawn(4), drawn(4)
	table, of := layerNorm{}.Kernels(), [][]int{{2, 3, 4}, {2, 3, 2}, {4}}
	norms, image := batchNorm{}.Kernels(), [][]int{{3, 2, 1, 4}, {2, 4}, {4}}
	k, s, running := drawn(12), drawn(8), drawn(4)
	for name, pass := range map[string][2]func(y []float64){
		"layernorm": {
			func(y []float64) {
				called(table, "own.layernorm", nil, [][]int{of[0], of[1], of[0], of[2], of[2]}, y, k, x, weight, bias)
			},
			func([]float64) {
				called(table, "own.layernorm.dw", nil, [][]int{of[2], of[2], of[0], of[0], of[1]}, dw, db, dy, x, k)
				called(table, "own.layernorm.dx", nil, [][]int{of[0], of[0], of[0], of[1], of[2]}, dx, dy, x, k, weight)
			}},
		"batchnorm": {
			func(y []float64) {
				called(norms, "norm.moments", nil, [][]int{image[1], image[2], image[2], image[0]}, k, running, running, x)
				called(norms, "norm", nil, [][]int{image[0], image[0], image[1], image[2], image[2]}, y, x, k, weight, bias)
			},
			func([]float64) {
				called(norms, "norm.dw", nil, [][]int{image[2], image[2], image[1], image[0], image[0], image[1]}, dw, db, s, dy, x, k)
				called(norms, "norm.dx", []float64{6}, [][]int{image[0], image[0], image[0], image[1], image[1], image[2]}, dx, dy, x, k, s, weight)
			}},
	} {
		y := make([]float64, 24)
		loss := func() (sum float64) {
			pass[0](y)
			for i := range y {
				sum += y[i] * dy[i]
			}
			return sum
		}
		loss()
		pass[1](nil)
		for of, pair := range map[string][2][]float64{"x": {x, dx}, "weight": {weight, dw}, "bias": {bias, db}} {
			for i, grad := range slices.Clone(pair[1]) {
				const h = 1e-5
				v := &pair[0][i]
				*v += h
				up := loss()
				*v -= 2 * h
				down := loss()
				*v += h
				if want := (up - down) / (2 * h); math.Abs(grad-want) > 1e-6*(1+math.Abs(want)) {
					t.Errorf("%s: gradient %d of %s is %v, differences say %v", name, i, of, grad, want)
				}
			}
		}
	}
}

// TestCut trains ten steps with whole layers and with layers that are cut along samples. Sums in another order change the
// weights in float64 by some 1e-16 each.
func TestCut(t *testing.T) {
	data, err := train.OpenData("digits", 320, 0)
	if err != nil {
		t.Fatal(err)
	}
	var of [2][]npz.Array
	for i, adapt := range []func(*dag.Lowering, int){whole, cut} {
		here := must(hardware.Detect())
		l := train.DefaultLowering(network(), here, 32, dag.Float64)
		adapt(&l, 32)
		w, err := train.New(network(), data, here, train.Options{Batch: 32, Type: dag.Float64, Seed: 7, Lowering: &l})
		if err != nil {
			t.Fatal(err)
		}
		run, err := w.Train(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		of[i] = run.Weights()
		tasks := 0
		for _, task := range w.Program.Graphs[0].Tasks {
			if task.Op == "own.layernorm" || task.Op == "own.layernorm.dw" || task.Op == "words.dw" {
				tasks++
			}
		}
		if want := []int{3, 12}[i]; tasks != want { // four parts of each
			t.Errorf("%d tasks, want %d", tasks, want)
		}
	}
	for i, a := range of[0] {
		other := of[1][i].Float64s()
		for j, x := range a.Float64s() {
			if math.Abs(x-other[j]) > 1e-11 {
				t.Errorf("%s[%d] is %v with whole layers and %v with cut ones", a.Name, j, x, other[j])
			}
		}
	}
}

// whole leaves all layers in one piece.
func whole(l *dag.Lowering, _ int) { clear(l.Layers) }
