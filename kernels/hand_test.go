package kernels_test

import (
	"testing"

	"dahl/dag"
	"dahl/kernels"
	"dahl/kernels/calls"
	"dahl/kernels/kerneltest"
)

// TestHandComputed runs every variant in both types on whole buffers and on regions
// of larger ones.
func TestHandComputed(t *testing.T) {
	tested := map[string]calls.Attributes{}
	for _, h := range kerneltest.HandCases() {
		for _, real := range []dag.DType{dag.Float32, dag.Float64} {
			for margin := range 2 {
				c, err := h.Case(real, margin)
				if err != nil {
					t.Fatalf("%s, %s: %v", h.Op, h.Name, err)
				}
				tested[c.Kernel.Base] |= c.Kernel.With
				for v := range c.Kernel.Variants {
					variant := &c.Kernel.Variants[v]
					if !c.Runs(variant) {
						continue
					}
					got := c.Clone()
					got.Run(variant)
					if err := h.Compare(got, variant); err != nil {
						t.Error(err)
					}
				}
			}
		}
	}
	for _, k := range kernels.Kernels() {
		if with, ok := tested[k.Base]; !k.Host && (!ok || !with.Has(k.With)) {
			t.Errorf("no case computed by hand for %s, or for an attribute of it", k.Op)
		}
	}
}
