//go:build peers

// Command blas measures matrix products and convolutions of dahl beside OpenBLAS,
// oneDNN and gonum on one thread, in GFLOP/s and as a share of the processor's
// measured peak of fused multiply-adds:
//
//	go run -tags peers ./bench/blas [-out FILE]
//
// It needs a C compiler and the development files of OpenBLAS and oneDNN 2
// (Debian: libopenblas-dev libdnnl-dev); dahl itself needs neither.
//
// Contestants of one line alternate; a figure is the median of the repetitions.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"dahl/kernels/simd"
)

func main() {
	out := flag.String("out", "", "also write the tables as a Markdown `file`")
	repetition := flag.Duration("repetition", 20*time.Millisecond, "about how long one repetition runs")
	repeats := flag.Int("repeats", 7, "repetitions of each contestant")
	tables := flag.String("tables", "gemm,conv", "which tables: gemm, conv")
	flag.Parse()
	if err := run(*out, *tables, &timer{repetition: *repetition, repeats: *repeats}); err != nil {
		fmt.Fprintln(os.Stderr, "blas:", err)
		os.Exit(1)
	}
}

// withCleanEnvironment starts the program again in an environment that names no
// processor for OpenBLAS and one thread for all; libraries read it when they are
// loaded, which is before main.
func withCleanEnvironment() error {
	env := append(slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "OPENBLAS_") || strings.HasPrefix(v, "OMP_")
	}), "OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1")
	if slices.Equal(env, os.Environ()) {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return fmt.Errorf("starting again with a clean environment: %w", syscall.Exec(self, os.Args, env))
}

func run(out, tables string, t *timer) error {
	if err := withCleanEnvironment(); err != nil {
		return err
	}
	if t.repeats < 1 || t.repetition <= 0 {
		return fmt.Errorf("-repeats %d -repetition %v: want at least 1, and a positive time", t.repeats, t.repetition)
	}
	runtime.LockOSThread()
	if err := startOneDNN(); err != nil {
		return err
	}
	var report strings.Builder
	w := io.MultiWriter(os.Stdout, &report)
	fmt.Fprintf(w, "OpenBLAS: %s, core %s. oneDNN %s. One thread, median of %d repetitions of %v.\n\n", openBLASVersion(), openBLASCore(), oneDNNVersion(), t.repeats, t.repetition)
	fmt.Fprintln(w, "The peak is that of a loop of fused multiply-adds, measured beside each line.")
	for _, name := range strings.Split(tables, ",") {
		var err error
		switch name {
		case "gemm":
			gemmTable(w, t)
		case "conv":
			err = convTable(w, t)
		default:
			err = fmt.Errorf("-tables %q: want gemm, conv or both", name)
		}
		if err != nil {
			return err
		}
	}
	if out == "" {
		return nil
	}
	return os.WriteFile(out, []byte(report.String()), 0o666)
}

// timer measures contestants in turn.
type timer struct {
	repetition time.Duration
	repeats    int
}

// medians returns the median time of one call of each contestant; a nil contestant
// takes no time.
func (t *timer) medians(contestants []func()) []time.Duration {
	calls := make([]int, len(contestants))
	times := make([][]time.Duration, len(contestants))
	for repeat := -1; repeat < t.repeats; repeat++ { // the first warms up and sizes the others
		for i, run := range contestants {
			if run == nil {
				continue
			}
			n := max(1, calls[i])
			run() // what the contestant before it left in the caches is gone
			start := time.Now()
			for range n {
				run()
			}
			took := time.Since(start) / time.Duration(n)
			if repeat < 0 {
				calls[i] = int(max(1, t.repetition/max(1, took)))
				continue
			}
			times[i] = append(times[i], took)
		}
	}
	result := make([]time.Duration, len(contestants))
	for i := range times {
		if slices.Sort(times[i]); len(times[i]) > 0 {
			result[i] = times[i][len(times[i])/2]
		}
	}
	return result
}

// compare measures contestants beside a loop that does nothing but multiply and add in
// registers, since the clock of a processor is not the same all the time. It returns a cell
// for each, its speed and share of the loop's, and the last two of a line: the loop's speed,
// and how much faster the last contestant is than the first.
func compare[T simd.Float](t *timer, flops float64, contestants ...func()) (cells []string, end string) {
	const rounds = 10_000
	loopFlops := simd.PeakFMA[T](simd.Widest(), rounds)
	times := t.medians(append(contestants, func() { simd.PeakFMA[T](simd.Widest(), rounds) }))
	last := len(contestants) - 1
	peak, ratio := loopFlops/times[last+1].Seconds(), "–"
	for _, took := range times[:last+1] {
		cell := "–"
		if took > 0 {
			rate := flops / took.Seconds()
			cell = fmt.Sprintf("%.0f (%.0f %%)", rate/1e9, 100*rate/peak)
		}
		cells = append(cells, cell)
	}
	if times[last] > 0 {
		ratio = fmt.Sprintf("%.2f", float64(times[0])/float64(times[last]))
	}
	return cells, fmt.Sprintf("%.0f | %s", peak/1e9, ratio)
}
