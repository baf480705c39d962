//go:build peers

package main

import (
	"fmt"
	"io"
)

// convShape is a convolution with a bias over square images and windows, float32.
type convShape struct{ n, c, h, f, k, stride, pad int }

func (s *convShape) out() int { return (s.h+2*s.pad-s.k)/s.stride + 1 }

func (s *convShape) String() string {
	text := fmt.Sprintf("%d→%d %d×%d @%d", s.c, s.f, s.k, s.k, s.h)
	if s.pad > 0 {
		text += fmt.Sprintf(" pad %d", s.pad)
	}
	if s.stride > 1 {
		text += fmt.Sprintf(" stride %d", s.stride)
	}
	return text
}

// flops is the work of each of the three passes; taps outside the image are none.
func (s *convShape) flops() float64 {
	taps := 0 // inside, along one dimension
	for o := range s.out() {
		for k := range s.k {
			if x := o*s.stride + k - s.pad; 0 <= x && x < s.h {
				taps++
			}
		}
	}
	return 2 * float64(s.n*s.f*s.c) * float64(taps*taps)
}

// convPasses are numbered as in onednn.h.
var convPasses = []string{"forward", "input gradient", "weight gradient"}

// convShapes are layers of the networks that dahl is measured with, of VGG and of
// ResNet, at batch 64.
var convShapes = []convShape{
	{n: 64, c: 1, h: 28, f: 32, k: 3, stride: 1},
	{n: 64, c: 1, h: 28, f: 6, k: 5, stride: 1, pad: 2},
	{n: 64, c: 6, h: 14, f: 16, k: 5, stride: 1},
	{n: 64, c: 32, h: 8, f: 32, k: 3, stride: 1, pad: 1},
	{n: 64, c: 3, h: 32, f: 32, k: 3, stride: 1, pad: 1},
	{n: 64, c: 32, h: 32, f: 32, k: 3, stride: 1, pad: 1},
	{n: 64, c: 32, h: 16, f: 64, k: 3, stride: 1, pad: 1},
	{n: 64, c: 64, h: 16, f: 64, k: 3, stride: 1, pad: 1},
	{n: 64, c: 64, h: 32, f: 128, k: 3, stride: 2, pad: 1},
	{n: 64, c: 64, h: 16, f: 128, k: 1, stride: 1},
	{n: 64, c: 256, h: 8, f: 256, k: 3, stride: 1, pad: 1},
	{n: 64, c: 512, h: 4, f: 512, k: 3, stride: 1, pad: 1},
}

func convTable(w io.Writer, t *timer) error {
	fmt.Fprint(w, "\n## Convolutions at batch 64, float32, GFLOP/s (share of the peak)\n\n")
	fmt.Fprint(w, "oneDNN has its operands in the layouts that it chose, dahl channels-last; neither conversion is timed.\nTaps outside the image do not count as work.\n\n")
	fmt.Fprintln(w, "| convolution | pass | oneDNN | its kernel | dahl | variant | peak | dahl / oneDNN |")
	fmt.Fprintln(w, "| --- | --- | ---: | --- | ---: | --- | ---: | ---: |")
	for i := range convShapes {
		for pass := range convPasses {
			if err := convLine(w, t, &convShapes[i], pass); err != nil {
				return err
			}
		}
	}
	return nil
}

func convLine(w io.Writer, t *timer, s *convShape, pass int) error {
	theirs, kernel, closeTheirs, err := openOneDNN(pass, s)
	if err != nil {
		return err
	}
	defer closeTheirs()
	ours := ourConv(pass, s)
	cells, end := compare[float32](t, s.flops(), theirs, ours.run)
	fmt.Fprintf(w, "| %v | %s | %s | %s | %s | %s | %s |\n", s, convPasses[pass], cells[0], kernel, cells[1], ours.variant, end)
	return nil
}
