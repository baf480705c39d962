//go:build peers

package main

import (
	"testing"
	"time"
)

// A 3×3 window over 8 pixels padded by 1: of 24 taps along a dimension 2 are
// outside, so 22² of them count for each of 3 images, 5 channels and 7 filters.
// With stride 2 there are 4 positions, the first of which has one tap outside: 11.
// A 5×5 window over 5 pixels without padding has 5.
func TestConvFlops(t *testing.T) {
	for _, c := range []struct {
		shape convShape
		want  float64
	}{
		{convShape{n: 3, c: 5, h: 8, f: 7, k: 3, stride: 1, pad: 1}, 2 * 3 * 5 * 7 * 22 * 22},
		{convShape{n: 3, c: 5, h: 8, f: 7, k: 3, stride: 2, pad: 1}, 2 * 3 * 5 * 7 * 11 * 11},
		{convShape{n: 1, c: 1, h: 5, f: 1, k: 5, stride: 1}, 2 * 5 * 5},
	} {
		if got := c.shape.flops(); got != c.want {
			t.Errorf("%v: %v flops, want %v", &c.shape, got, c.want)
		}
	}
}

// Every contestant computes the same small products, in all transpositions and
// both types; a difference panics.
func TestContestantsAgree(t *testing.T) {
	tm := timer{repetition: time.Microsecond, repeats: 1}
	for _, transA := range []bool{false, true} {
		for _, transB := range []bool{false, true} {
			gemmRows(t.Output(), &tm, &gemmShape{m: 13, n: 11, k: 17, transA: transA, transB: transB})
		}
	}
}

// oneDNN and dahl compute every pass of small convolutions.
func TestConvolutionsRun(t *testing.T) {
	if err := startOneDNN(); err != nil {
		t.Fatal(err)
	}
	s := &convShape{n: 2, c: 3, h: 7, f: 5, k: 3, stride: 2, pad: 1}
	for pass := range convPasses {
		if err := convLine(t.Output(), &timer{repetition: time.Microsecond, repeats: 1}, s, pass); err != nil {
			t.Error(err)
		}
	}
}
