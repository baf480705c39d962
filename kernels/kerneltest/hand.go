package kerneltest

import (
	"fmt"
	"math"
	"slices"

	"dahl/dag"
	"dahl/kernels"
	"dahl/kernels/calls"
)

// HandCase is a call small enough to compute by hand.
type HandCase struct {
	Name   string // what the case is about
	Op     string
	Params dag.Params
	Shapes [][]int
	In     [][]float64 // values of all operands before the call, nil for those it writes
	Want   [][]float64 // those after it, nil for those that are only read
}

// Case builds the call, as New does.
func (h *HandCase) Case(real dag.DType, margin int) (*Case, error) {
	k, err := kernels.KernelByName(h.Op)
	if err != nil {
		return nil, err
	}
	c := New(k, real, h.Shapes, FirstModes(k), h.Params, margin)
	for i, values := range h.In {
		if values != nil {
			c.Set(i, func(j int) float64 { return values[j] })
		}
	}
	return c, kernels.Validate(&c.Spec)
}

// Compare compares results with those computed by hand. NaN equals NaN.
func (h *HandCase) Compare(got *Case, v *calls.Variant) error {
	for i, want := range h.Want {
		if g := got.Values(i); want != nil && !slices.EqualFunc(g, want, same) {
			return fmt.Errorf("%s %s %v, %s: %s is %v, want %v", h.Op, v.Name, got.Spec.Type, h.Name, got.Kernel.Operands[i].Name, g, want)
		}
	}
	return nil
}

func same(a, b float64) bool { return a == b || a != a && b != b }

var nan, inf = math.NaN(), math.Inf(1)

// HandCases has one at least for every operation that computes, and for each of its attributes. All numbers are exact in
// float32.
func HandCases() []HandCase {
	return slices.Concat(productCases, layerCases, trainingCases, normCases(), dropCases(), rowCases(), attentionCases(), attentionGradientCases(), xentCases())
}
