package kernels_test

import (
	"math"
	"testing"

	"dahl/kernels"
)

// TestFunctions compares the slope of every function with central differences, and its bounds with
// what a grid from -9 to 9 shows. The third derivatives are below 4, so a difference over h on both
// sides errs by at most 4h²/6, beside roundings of |f| ≤ 9 that are divided by h. The greatest
// values on the grid miss those of the functions by less than the distance of its points times 4.
func TestFunctions(t *testing.T) {
	const h = 0x1p-16
	for _, f := range kernels.Functions() {
		if got := math.Abs(f.Value(0, f.Default)); got != f.AtZero {
			t.Errorf("%s: |f(0)| is %g, want %g", f.Name, got, f.AtZero)
		}
		slope := func(x float64) float64 {
			if f.OfOutput {
				return f.Slope(f.Value(x, f.Default), f.Default)
			}
			return f.Slope(x, f.Default)
		}
		steepest, bend := 0.0, 0.0
		for x := -9 + 0x1p-8; x <= 9; x += 0x1p-7 { // no point at 0, where some have a kink
			want := (f.Value(x+h, f.Default) - f.Value(x-h, f.Default)) / (2 * h)
			if got := slope(x); !(math.Abs(got-want) <= 4*h*h/6+9*0x1p-50/h) {
				t.Fatalf("%s: slope at %g is %g, the difference quotient %g", f.Name, x, got, want)
			}
			steepest, bend = max(steepest, math.Abs(slope(x))), max(bend, math.Abs(slope(x+h)-slope(x-h))/(2*h))
		}
		if !(steepest <= f.Steepest && steepest > f.Steepest-0.05 && bend <= f.Bend && bend > f.Bend-0.05) {
			t.Errorf("%s: |f'| reaches %g and |f''| %g, the bounds are %g and %g", f.Name, steepest, bend, f.Steepest, f.Bend)
		}
	}
	if _, err := kernels.FunctionByName("none"); err == nil {
		t.Error("a function that there is not is found")
	}
}
