//go:build cuda

package cuda

import (
	"errors"
	"strings"
	"testing"

	"dahl/kernels/offload"
)

// smallConvolution is one of 3 samples of 2 channels, 5 rows and 7 columns, with 5 filters of
// 3×3, padding 1 and stride 2, hence of 3 rows and 4 columns. X is the
// bench's first operand, the filters are its second one, Y its third. What the kind does not
// give is read from these.
func smallConvolution(b *bench, kind offload.ConvolutionKind) offload.Convolution {
	return offload.Convolution{
		Kind: kind, Window: 3, Pad: 1, Stride: 2,
		X:    offload.Image{Addr: uint64(b.operands[0]), Extent: [4]int32{3, 2, 5, 7}, Stride: [4]int32{70, 1, 14, 2}},
		W:    uint64(b.operands[1]),
		Y:    offload.Image{Addr: uint64(b.operands[2]), Extent: [4]int32{3, 5, 3, 4}, Stride: [4]int32{60, 1, 20, 5}},
		Work: uint64(b.operands[1]) + operandBytes/2, WorkBytes: operandBytes / 2,
	}
}

// TestDnnConvolution computes each kind, and the same as a graph that is issued twice, of
// which each issue adds to the gradients; and compares with the sum as written. A library loads
// its kernels at the first call, which is refused in a capture.
func TestDnnConvolution(t *testing.T) {
	for _, kind := range []offload.ConvolutionKind{offload.Forward, offload.InputGradient, offload.WeightGradient} {
		b, h := libraryBench(t, offload.CuDNN)
		c := smallConvolution(b, kind)
		c.Add = kind != offload.Forward
		ready, err := h.Prepare(c)
		must(t, err)
		x, w, y := view[float32](b.at(0)), view[float32](b.at(1)), view[float32](b.at(2))
		for i := range y {
			y[i] = float32((i*5 + 2) % 7)
		}
		b.upload(b.stream, 2)
		operand := []int{offload.Forward: 2, offload.InputGradient: 0, offload.WeightGradient: 1}[kind]
		result := [][]float32{x, w, y}[operand]
		want := make([]float32, len(result))
		for at := range 3 * 5 * 3 * 4 * 2 * 3 * 3 {
			j, i, ch, v, u, f, n := at%3, at/3%3, at/9%2, at/18%4, at/72%3, at/216%5, at/1080
			row, column := u*2+i-1, v*2+j-1
			if row < 0 || row >= 5 || column < 0 || column >= 7 {
				continue
			}
			ax, aw, ay := n*70+row*14+column*2+ch, f*18+i*6+j*2+ch, n*60+u*20+v*5+f
			switch kind {
			case offload.Forward:
				want[ay] += x[ax] * w[aw]
			case offload.InputGradient:
				want[ax] += w[aw] * y[ay]
			case offload.WeightGradient:
				want[aw] += x[ax] * y[ay]
			}
		}
		extent := []int{3 * 70, 5 * 18, 3 * 60}[operand]
		for i := range extent {
			if c.Add {
				want[i] = result[i] + 3*want[i]
			}
		}
		must(t, h.Issue(ready))
		graph, err := b.stream.Capture(func() error { return h.Issue(ready) })
		must(t, err, b.stream.LaunchGraph(graph), b.stream.LaunchGraph(graph))
		b.download(b.stream, operand)
		must(t, b.stream.Synchronize(), graph.Free())
		ready.Free()
		for i, got := range result[:extent] {
			if got != want[i] {
				t.Fatalf("kind %d: element %d is %g, want %g", kind, i, got, want[i])
			}
		}
	}
}

// TestDnnRefuses: cuDNN of the test driver has no algorithm that needs no workspace for gradients, which is a refusal.
// Extents that are none are an error that names the call and the status.
func TestDnnRefuses(t *testing.T) {
	b, h := libraryBench(t, offload.CuDNN)
	if strings.HasPrefix(b.device.Name, "Test device") {
		cramped := smallConvolution(b, offload.WeightGradient)
		cramped.WorkBytes = 63
		if _, err := h.Prepare(cramped); !errors.Is(err, offload.ErrRefused) || strings.Contains(err.Error(), "\n") {
			t.Errorf("kind %d: error %v", cramped.Kind, err)
		}
	}
	none := smallConvolution(b, offload.Forward)
	none.Window = 0
	if _, err := h.Prepare(none); err == nil || err.Error() != "cudnn descriptors: CUDNN_STATUS_BAD_PARAM" {
		t.Errorf("filters of 0×0: %v", err)
	}
}

// TestDnnOutOfMemory: what both versions answer where they got no memory is the driver's error.
func TestDnnOutOfMemory(t *testing.T) {
	_, h := libraryBench(t, offload.CuDNN)
	d := &h.(*dnnHandle).dnn
	for _, c := range []struct {
		err  error
		want bool
	}{{d.fail("call", 2), true}, {d.fail("call", 4004), true}, {d.fail("call", 3000), false}, {d.fail("call", 5000), false}} {
		var e *Error
		if got := errors.As(c.err, &e) && e.OutOfMemory(); got != c.want {
			t.Errorf("%v: out of memory %v", c.err, got)
		}
	}
}
