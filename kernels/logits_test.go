package kernels_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"dahl/dag"
	"dahl/kernels"
	"dahl/kernels/kerneltest"
	"dahl/must"
)

// TestLogitsInBlocks: logits that are large enough to be computed in blocks lead to what plain Go computes. In float64 a logit of 151 products and a
// sum of 263 of them have errors below 1e-12 of their terms, which are below 151.
func TestLogitsInBlocks(t *testing.T) {
	for _, c := range []struct {
		op     string
		shapes [][]int
		params dag.Params
	}{
		{"xent.sums", [][]int{{263, 3}, {263, 151}, {197, 151}, {263}}, dag.Params{{Name: "first", Value: 7}}},
		{"xent.dx", [][]int{{263, 151}, {263, 151}, {197, 151}, {263}, {263, 3}, {1}}, kerneltest.LogitParams(263, 7)},
		{"xent.dw", [][]int{{197, 151}, {263, 151}, {197, 151}, {263}, {263, 3}}, kerneltest.LogitParams(269, 0)},
	} {
		k := must.Get(kernels.KernelByName(c.op))(t)
		s := kerneltest.New(k, dag.Float64, c.shapes, kerneltest.FirstModes(k)[:len(c.shapes)], c.params, 0)
		must.Do(t, kernels.Validate(&s.Spec))
		s.Fill(rand.New(rand.NewPCG(43, 47)))
		var want []float64
		for v := range k.Variants {
			variant := &k.Variants[v]
			if variant.Name == "ref" || !s.Runs(variant) {
				continue
			}
			got := s.Clone()
			got.Run(variant)
			values := got.Values(0)
			if want == nil {
				want = values
			}
			for i, v := range values {
				if !(math.Abs(v-want[i]) <= 1e-10*max(1, math.Abs(want[i]))) {
					t.Fatalf("%s %s: [%d] is %v, plain Go gives %v", c.op, variant.Name, i, v, want[i])
				}
			}
		}
	}
}
