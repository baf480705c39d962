package kernels_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"dahl/dag"
	"dahl/kernels"
	"dahl/kernels/kerneltest"
	"dahl/must"
)

// TestAttentionGradientsTogether: attention.dx has the bits of attention.dq and attention.dkv in every variant, so that no choice between them changes a
// result. The last case has several tiles of queries and of keys.
func TestAttentionGradientsTogether(t *testing.T) {
	for _, drop := range []string{"", ".drop"} {
		k := must.Get(kernels.KernelByName("attention" + drop + ".dx"))(t)
		cases := slices.Collect(kerneltest.Cases(k, 16))
		if drop == "" {
			queries, keys, numbers := []int{1, 263, 34}, []int{1, 263, 17}, []int{1, 2, 263}
			shapes := [][]int{queries, keys, keys, queries, queries, keys, keys, numbers, numbers}
			c := kerneltest.New(k, dag.Float32, shapes, kerneltest.FirstModes(k)[:len(shapes)], kerneltest.HeadParams(1, 2, 263, 262), 0)
			c.Fill(rand.New(rand.NewPCG(5, 7)))
			cases = append(cases, c)
		}
		for _, c := range cases {
			for i := range k.Variants {
				if v := &k.Variants[i]; c.Runs(v) {
					all := c.Clone()
					all.Run(v)
					comparePart(t, all, "attention"+drop+".dq", v.Name, 1, 2)
					comparePart(t, all, "attention"+drop+".dkv", v.Name, 0)
				}
			}
		}
	}
}

// comparePart runs a variant of an operation that lacks some of the three results of a call, and compares the others.
func comparePart(t *testing.T, all *kerneltest.Case, op, variant string, lacks ...int) {
	t.Helper()
	var of []int
	for i := range all.Buffers {
		if !slices.Contains(lacks, i) {
			of = append(of, i)
		}
	}
	k := must.Get(kernels.KernelByName(op))(t)
	c := all.Part(k, of)
	for i := range 3 - len(lacks) {
		c.Set(i, func(int) float64 { return math.NaN() })
	}
	v, _ := k.Variant(variant)
	c.Run(v)
	for i := range 3 - len(lacks) {
		want, got := all.Values(of[i]), c.Values(i)
		for j := range got {
			if math.Float64bits(got[j]) != math.Float64bits(want[j]) {
				t.Fatalf("%s %s %s: %s[%d] is %v, and %v by %s", op, variant, c.Spec.Key(), k.Operands[i].Name, j, got[j], want[j], all.Kernel.Op)
			}
		}
	}
}
