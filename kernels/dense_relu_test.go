package kernels_test

import (
	"math/rand/v2"
	"testing"

	"dahl/dag"
	"dahl/kernels"
	"dahl/kernels/kerneltest"
)

// TestDenseReLUIsTwoOperations: the references of the fused operations give the bits
// of dense followed by relu, and of dense.dx followed by relu.dx with the mask of x.
func TestDenseReLUIsTwoOperations(t *testing.T) {
	const n, in, out = 5, 7, 3
	rng := rand.New(rand.NewPCG(1, 2))
	ref := func(op string, shapes [][]int, values ...[]float64) []float64 {
		k, _ := kernels.KernelByName(op)
		s := kerneltest.New(k, dag.Float32, shapes, kerneltest.FirstModes(k), nil, 1)
		s.Fill(rng)
		for i, v := range values {
			s.Set(len(shapes)-len(values)+i, func(j int) float64 { return v[j] })
		}
		s.Run(&k.Variants[0])
		return append(s.Values(0), s.Values(1)...)
	}
	random := func(count int) []float64 {
		v := make([]float64, count)
		for i := range v {
			v[i] = float64(rng.Float32() - 0.5)
		}
		return v
	}
	x, w, b, dy := random(n*in), random(out*in), random(out), random(n*out)
	y := ref("dense", [][]int{{n, out}, {n, in}, {out, in}, {out}}, x, w, b)[:n*out]
	compareBits(t, "dense.relu",
		ref("dense.relu", [][]int{{n, out}, {n, in}, {out, in}, {out}}, x, w, b)[:n*out],
		ref("relu", [][]int{{n, out}, {n, out}, {n, out}}, y)[:n*out])

	positive := ref("relu", [][]int{{n, in}, {n, in}, {n, in}}, x)
	dx := ref("dense.dx", [][]int{{n, in}, {n, out}, {out, in}}, dy, w)[:n*in]
	compareBits(t, "dense.dx.relu",
		ref("dense.dx.relu", [][]int{{n, in}, {n, out}, {out, in}, {n, in}}, dy, w, positive[:n*in])[:n*in],
		ref("relu.dx", [][]int{{n, in}, {n, in}, {n, in}}, dx, positive[n*in:])[:n*in])
}

func compareBits(t *testing.T, op string, got, want []float64) {
	t.Helper()
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("%s: element %d is %v, the two operations give %v", op, i, got[i], want[i])
		}
	}
}
