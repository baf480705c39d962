package kernels_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"dahl/dag"
	"dahl/kernels"
	"dahl/kernels/kerneltest"
	"dahl/kernels/simd"
	"dahl/must"
)

// convBenchCase is a convolution of square images and windows.
type convBenchCase struct{ channels, height, filters, window, stride, pad int }

// convBenchCases are layers of resnet18 and resnet50 at 32×32 with those of stride 1 beside, of
// cifar-cnn, and of lenet5.
var convBenchCases = []convBenchCase{
	{64, 32, 64, 3, 1, 1}, {128, 16, 128, 3, 1, 1}, {256, 8, 256, 3, 1, 1}, {512, 4, 512, 3, 1, 1},
	{64, 32, 128, 3, 2, 1}, {128, 16, 256, 3, 2, 1}, {256, 8, 512, 3, 2, 1},
	{64, 32, 128, 1, 2, 0}, {128, 16, 256, 1, 2, 0}, {256, 8, 512, 1, 2, 0},
	{64, 32, 64, 1, 1, 0}, {64, 32, 256, 1, 1, 0}, {256, 32, 64, 1, 1, 0}, {256, 32, 128, 1, 1, 0},
	{128, 16, 512, 1, 1, 0}, {512, 16, 128, 1, 1, 0}, {512, 16, 256, 1, 1, 0}, {256, 8, 1024, 1, 1, 0},
	{1024, 8, 256, 1, 1, 0}, {512, 4, 2048, 1, 1, 0}, {2048, 4, 512, 1, 1, 0},
	{256, 32, 512, 1, 2, 0}, {512, 16, 1024, 1, 2, 0}, {1024, 8, 2048, 1, 2, 0},
	{3, 32, 64, 3, 1, 1}, {3, 32, 32, 3, 1, 1}, {32, 32, 32, 3, 1, 1}, {32, 16, 64, 3, 1, 1}, {64, 16, 64, 3, 1, 1},
	{1, 28, 6, 5, 1, 2}, {6, 14, 16, 5, 1, 0}, {1, 28, 32, 3, 1, 0},
}

func (c *convBenchCase) String() string {
	return fmt.Sprintf("%d→%d_%d×%d@%d_stride%d_pad%d", c.channels, c.filters, c.window, c.window, c.height, c.stride, c.pad)
}

func (c *convBenchCase) out() int { return (c.height+2*c.pad-c.window)/c.stride + 1 }

// flops is the work of one pass. Taps outside the image are none.
func (c *convBenchCase) flops(batch int) float64 {
	taps := 0 // inside, along one dimension
	for u := range c.out() {
		for i := range c.window {
			if at := u*c.stride + i - c.pad; 0 <= at && at < c.height {
				taps++
			}
		}
	}
	return 2 * float64(batch*c.channels*c.filters*taps*taps)
}

// BenchmarkConvolutions reports what the vector variants of channels-last convolutions reach of
// the peak of fused multiply-adds, of 64 samples in float32. The loop of the peak runs after each
// call, since the clock of a processor varies. Both figures are of medians of processor time, in which
// other programs take no turns.
func BenchmarkConvolutions(b *testing.B) {
	const batch = 64
	for i := range convBenchCases {
		c := &convBenchCases[i]
		out := c.out()
		x, y := []int{batch, c.height, c.height, c.channels}, []int{batch, out, out, c.filters}
		w, turned := []int{c.window, c.window, c.channels, c.filters}, []int{c.window, c.window, c.filters, c.channels}
		for _, pass := range []struct {
			op     string
			shapes [][]int
		}{
			{"conv2d.nhwc", [][]int{y, x, w}},
			{"conv2d.nhwc.dx", [][]int{x, y, turned}},
			{"conv2d.nhwc.dw", [][]int{w, y, x}},
		} {
			b.Run(fmt.Sprintf("%v/%s", c, pass.op), func(b *testing.B) {
				params := kerneltest.ConvReLUParams(float64(c.pad), float64(c.stride), 0)
				benchLevels(b, pass.op, pass.shapes, params, c.flops(batch))
			})
		}
	}
}

// benchLevels runs the vector variants of an operation beside the peak.
func benchLevels(b *testing.B, op string, shapes [][]int, params dag.Params, flops float64) {
	k, _ := kernels.KernelByName(op)
	s := kerneltest.New(k, dag.Float32, shapes, kerneltest.FirstModes(k), params, 0)
	s.Fill(rand.New(rand.NewPCG(1, 2)))
	must.Do(b, kernels.Validate(&s.Spec))
	for _, l := range []simd.Level{simd.AVX2, simd.AVX512} {
		if v, ok := k.Variant(l.String()); ok && v.RunsHere() {
			call, run := s.Call(v), v.Run(dag.Float32)
			b.Run(v.Name, func(b *testing.B) { besidePeak(b, l, flops, func() { run(call) }) })
		}
	}
}

// besidePeak runs a function of so many operations and a loop of the peak in turn.
func besidePeak(b *testing.B, l simd.Level, flops float64, run func()) {
	const rounds = 10_000
	var own, peak []time.Duration
	run()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for b.Loop() {
		start := threadTime(b)
		run()
		between := threadTime(b)
		simd.PeakFMA[float32](l, rounds)
		own, peak = append(own, between-start), append(peak, threadTime(b)-between)
	}
	slices.Sort(own)
	slices.Sort(peak)
	rate := flops / float64(own[len(own)/2].Nanoseconds())
	most := simd.PeakFMA[float32](l, rounds) / float64(peak[len(peak)/2].Nanoseconds())
	b.ReportMetric(rate, "GFLOP/s")
	b.ReportMetric(100*rate/most, "%peak")
	b.ReportMetric(0, "ns/op") // the peak's time is in it
}

// threadTime is the processor time that this thread has taken. Getrusage knows it by ticks only.
func threadTime(b *testing.B) time.Duration {
	b.Helper()
	const thisThread = 3 // CLOCK_THREAD_CPUTIME_ID
	var t syscall.Timespec
	if _, _, err := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, thisThread, uintptr(unsafe.Pointer(&t)), 0); err != 0 {
		b.Fatal(err)
	}
	return time.Duration(t.Nano())
}
