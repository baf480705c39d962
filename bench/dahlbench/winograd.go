package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dahl/cmd/cli"
	"dahl/dag"
	"dahl/execute"
	"dahl/kernels"
	"dahl/kernels/kerneltest"
	"dahl/kernels/simd"
)

// winogradOptions say how convolutions through Winograd's domain are measured.
type winogradOptions struct {
	python     string
	batch      int
	repeats    int
	repetition time.Duration
	out        string
}

func newWinograd() *cobra.Command {
	var o winogradOptions
	cmd := measurement(&cobra.Command{
		Use:   "winograd",
		Short: "convolutions by Winograd's algorithm beside direct ones and oneDNN's, and their errors",
		Long: `winograd measures the passes of 3×3 convolutions on one thread: the direct variants, those by
Winograd's algorithm, and oneDNN's as PyTorch calls them, channels last. Contestants of a row
alternate, and a figure is the fastest repetition, in processor time of the thread. GFLOP/s are those of the direct
count, 2·9·channels·filters per pixel of the result. A forward pass adds the bias, ours
also does the ReLU; an input gradient of ours stops at the zeros of a ReLU; a weight gradient
has the gradient of the bias.

Errors are those of normally distributed numbers against float64, beside those of the
direct variant.`,
		Example: "  dahl-bench winograd --python /usr/bin/python3 --out bench/winograd.md",
	}, o.run)
	f := cmd.Flags()
	f.StringVar(&o.python, "python", "python3", "Python `interpreter` that has PyTorch and NumPy")
	f.IntVar(&o.batch, "batch", 64, "images of a batch")
	f.IntVar(&o.repeats, "repeats", 15, "repetitions of each contestant")
	f.DurationVar(&o.repetition, "repetition", 30*time.Millisecond, "about how long one repetition runs")
	f.StringVar(&o.out, "out", "", "also write the tables as a Markdown `file`")
	return cmd
}

// convolution is one with a padding of 1, over square images.
type convolution struct {
	Pass     string `json:"pass"`
	Batch    int    `json:"batch"`
	Side     int    `json:"side"`
	Channels int    `json:"channels"`
	Filters  int    `json:"filters"`
}

// The passes, as PyTorch's worker knows them.
const (
	passForward = "forward"
	passInput   = "input gradient"
	passWeight  = "weight gradient"
)

func (c *convolution) flops() float64 {
	return 2 * 9 * float64(c.Batch*c.Side*c.Side) * float64(c.Channels*c.Filters)
}

// call is the operation of the pass with all that follows its sums.
func (c *convolution) call(t dag.DType) *kerneltest.Case {
	x, y := []int{c.Batch, c.Side, c.Side, c.Channels}, []int{c.Batch, c.Side, c.Side, c.Filters}
	w, wt, b := []int{3, 3, c.Channels, c.Filters}, []int{3, 3, c.Filters, c.Channels}, []int{c.Filters}
	of := map[string]struct {
		op     string
		shapes [][]int
		params dag.Params
	}{
		passForward: {"conv2d.nhwc", [][]int{y, x, w, b}, kerneltest.ConvReLUParams(1, 1, 1)},
		passInput:   {"conv2d.nhwc.dx", [][]int{x, y, wt, x}, kerneltest.ConvParams(1, 1)},
		passWeight:  {"conv2d.nhwc.dw", [][]int{w, y, x, b}, kerneltest.ConvParams(1, 1)},
	}[c.Pass]
	k, err := kernels.KernelByName(of.op)
	if err != nil {
		panic("dahl-bench: " + err.Error())
	}
	s := kerneltest.New(k, t, of.shapes, kerneltest.FirstModes(k), of.params, 0)
	rng := rand.New(rand.NewPCG(uint64(c.Channels), uint64(c.Side)))
	for i := range of.shapes {
		s.Set(i, func(int) float64 { return float64(float32(rng.NormFloat64())) })
	}
	return s
}

// winogradLevels are those with vectors that this machine has, the widest first.
func winogradLevels() (all []simd.Level) {
	for _, l := range []simd.Level{simd.AVX512, simd.AVX2} {
		if l.Supported() {
			all = append(all, l)
		}
	}
	return all
}

func (o *winogradOptions) run(ctx context.Context, stdout, stderr io.Writer) error {
	if err := cmp.Or(cli.CheckNumbers("repeats", o.repeats), cli.CheckNumbers("batch", o.batch), cli.CheckWritable(o.out)); err != nil {
		return err
	}
	if len(winogradLevels()) == 0 {
		return cli.InputErrorf("this processor has no AVX2, without which convolutions are direct")
	}
	runtime.LockOSThread() // for threadTime
	torch, err := startConvolutions(ctx, o.python)
	if err != nil {
		return err
	}
	defer torch.close()
	var report strings.Builder
	w := io.MultiWriter(stdout, &report)
	build := cli.ThisBuild()
	fmt.Fprintf(w, "dahl %s (commit %s) beside PyTorch %s with oneDNN %s, one thread, processor time.\n", build.Version, build.Commit, torch.Torch, torch.OneDNN)
	if err := o.speeds(ctx, w, stderr, torch); err != nil {
		return err
	}
	printWinogradErrors(w)
	if o.out == "" {
		return nil
	}
	return os.WriteFile(o.out, []byte(report.String()), 0o666)
}

// winogradSpeeds are the sizes of a table of speeds: side, channels and filters.
var winogradSpeeds = [][3]int{{32, 32, 32}, {16, 64, 64}, {32, 64, 64}, {16, 128, 128}, {8, 256, 256}, {4, 512, 512}}

func (o *winogradOptions) speeds(ctx context.Context, w, stderr io.Writer, torch *torchConvolutions) error {
	fmt.Fprintf(w, "\n## GFLOP/s of the direct count at batch %d\n\nThe peak is that of a loop of fused multiply-adds, measured beside each row.\n\n", o.batch)
	fmt.Fprint(w, "| convolution | pass | peak | oneDNN |")
	for _, l := range winogradLevels() {
		fmt.Fprintf(w, " direct %v | Winograd %v | ratio |", l, l)
	}
	fmt.Fprint(w, " Winograd / oneDNN | load of others |\n| --- | --- |"+strings.Repeat(" ---: |", 4+3*len(winogradLevels()))+"\n")
	for _, s := range winogradSpeeds {
		for _, pass := range []string{passForward, passInput, passWeight} {
			if err := ctx.Err(); err != nil {
				return context.Cause(ctx)
			}
			c := &convolution{pass, o.batch, s[0], s[1], s[2]}
			if err := o.speed(w, torch, c); err != nil {
				return err
			}
			fmt.Fprintf(stderr, "%d→%d @%d %s\n", c.Channels, c.Filters, c.Side, pass)
		}
	}
	return nil
}

// speed prints a row.
func (o *winogradOptions) speed(w io.Writer, torch *torchConvolutions, c *convolution) error {
	s := c.call(dag.Float32)
	contestants := []func(calls int) (time.Duration, error){func(calls int) (time.Duration, error) { return torch.run(c, calls) }}
	for _, l := range winogradLevels() {
		for _, name := range []string{l.String(), "winograd-" + l.String()} {
			v, _ := s.Kernel.Variant(name)
			call, run := s.Call(v), v.Run(dag.Float32)
			contestants = append(contestants, func(calls int) (time.Duration, error) {
				start := threadTime()
				for range calls {
					run(call)
				}
				return threadTime() - start, nil
			})
		}
	}
	const rounds = 50_000
	contestants = append(contestants, func(calls int) (time.Duration, error) {
		start := threadTime()
		for range calls {
			simd.PeakFMA[float32](winogradLevels()[0], rounds)
		}
		return threadTime() - start, nil
	})
	load := execute.StartLoad(torch.cmd.Process.Pid)
	best, err := fastest(contestants, o.repeats, o.repetition)
	if err != nil {
		return err
	}
	rate := func(i int) float64 { return c.flops() / best[i].Seconds() / 1e9 }
	last := len(best) - 1
	peak := simd.PeakFMA[float32](winogradLevels()[0], rounds) / best[last].Seconds()
	fmt.Fprintf(w, "| %d→%d @%d | %s | %.0f | %.0f |", c.Channels, c.Filters, c.Side, c.Pass, peak/1e9, rate(0))
	for i := 1; i < last; i += 2 {
		fmt.Fprintf(w, " %.0f | %.0f | %.2f |", rate(i), rate(i+1), rate(i+1)/rate(i))
	}
	fmt.Fprintf(w, " %.2f | %.2f cores |\n", rate(2)/rate(0), load.Load().Cores())
	return nil
}

// fastest is the shortest time of a call of each contestant. They alternate, each with as many calls as take about as long as said.
func fastest(contestants []func(calls int) (time.Duration, error), repeats int, repetition time.Duration) ([]time.Duration, error) {
	best, calls := make([]time.Duration, len(contestants)), make([]int, len(contestants))
	for repeat := -1; repeat < repeats; repeat++ { // the first warms up
		for i, run := range contestants {
			n := max(1, calls[i])
			took, err := run(n)
			if err != nil {
				return nil, err
			}
			if took /= time.Duration(n); best[i] == 0 || took < best[i] {
				best[i] = max(1, took)
			}
			calls[i] = int(repetition / best[i])
		}
	}
	return best, nil
}

// winogradErrorChannels are the numbers of channels, and of filters, of the table of errors.
var winogradErrorChannels = []int{32, 64, 128, 256, 512}

func printWinogradErrors(w io.Writer) {
	l := winogradLevels()[0]
	fmt.Fprintf(w, "\n## Errors against float64, 16 images of 8×8, %v\n\n", l)
	fmt.Fprintln(w, "| channels | pass | root of the mean square, direct | Winograd | ratio | maximum, direct | Winograd | ratio |")
	fmt.Fprintln(w, "| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |")
	for _, channels := range winogradErrorChannels {
		for _, pass := range []string{passForward, passInput, passWeight} {
			c := &convolution{pass, 16, 8, channels, channels}
			exact := c.call(dag.Float64)
			exact.Run(exact.Kernel.Default())
			want := exact.Values(0)
			rms, most := c.errors(l.String(), want)
			winogradRMS, winogradMost := c.errors("winograd-"+l.String(), want)
			fmt.Fprintf(w, "| %d | %s | %.2e | %.2e | %.2f | %.2e | %.2e | %.2f |\n", channels, pass,
				rms, winogradRMS, winogradRMS/rms, most, winogradMost, winogradMost/most)
		}
	}
}

// errors are those of a variant: the root of their mean square, and the greatest.
func (c *convolution) errors(variant string, want []float64) (rms, most float64) {
	s := c.call(dag.Float32)
	v, _ := s.Kernel.Variant(variant)
	s.Run(v)
	for i, got := range s.Values(0) {
		d := math.Abs(got - want[i])
		rms, most = rms+d*d, max(most, d)
	}
	return math.Sqrt(rms / float64(len(want))), most
}
