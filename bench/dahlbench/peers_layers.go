package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	"dahl/cmd/cli"
	"dahl/kernels/simd"
	"dahl/nn"
	"dahl/schedule"
	"dahl/train/peer"
)

// layerRow is one operation of one layer in the training step, summed over its
// tasks and averaged over the steps.
type layerRow struct {
	Model      string  `json:"model"`
	Batch      int     `json:"batch"`
	Threads    int     `json:"threads"`
	Layer      string  `json:"layer"`
	Op         string  `json:"op"`
	Tasks      int     `json:"tasks"`
	BusyS      float64 `json:"busy_s"` // per step, of all cores together
	Share      float64 `json:"share"`  // of the cores' time in the step
	FlopsPerS  float64 `json:"flops_per_s"`
	BytesPerS  float64 `json:"bytes_per_s"`
	OfPeak     float64 `json:"of_fma_peak"`       // of one core
	OfCopyRate float64 `json:"of_copy_bandwidth"` // of one core copying within its cache
}

// layers accounts for every operation of the training step in the fastest of some
// short runs; the last row is the time in which cores had no task.
func (s *ourSide) layers() ([]layerRow, error) {
	graph := s.graph(peer.ModeTrain)
	g := s.Workload.Program.Graphs[graph]
	const steps, runs = 50, 7
	var sched *schedule.Schedule
	for range runs {
		run, err := s.RunSteps(s.ctx, graph, steps, s.Images(graph, steps), true)
		if err != nil {
			return nil, err
		}
		if sched == nil || run.Makespan < sched.Makespan {
			sched = run
		}
	}
	type key struct{ layer, op string }
	rows := map[key]*layerRow{}
	base := layerRow{Model: s.Workload.Model.Name, Batch: nn.BatchOf(g), Threads: s.unit.Threads}
	capacity := sched.Makespan.Seconds() * float64(base.Threads)
	idle := capacity
	for _, span := range sched.Spans {
		task := &g.Tasks[span.Task]
		k := key{task.Labels.Layer, task.Op}
		r := rows[k]
		if r == nil {
			of := base
			of.Layer, of.Op = k.layer, k.op
			r, rows[k] = &of, &of
		}
		took := (span.End - span.Start).Seconds()
		idle -= took
		r.Tasks++
		r.BusyS += took
		r.FlopsPerS += task.Flops // over all spans, until the times of these are known
		r.BytesPerS += float64(task.MovedBytes)
	}
	peak, copyRate := fmaPeak(), copyBandwidth()
	var all []layerRow
	for _, r := range rows {
		r.FlopsPerS, r.BytesPerS = r.FlopsPerS/r.BusyS, r.BytesPerS/r.BusyS
		r.OfPeak, r.OfCopyRate = r.FlopsPerS/peak, r.BytesPerS/copyRate
		r.Share, r.Tasks, r.BusyS = r.BusyS/capacity, r.Tasks/steps, r.BusyS/steps
		all = append(all, *r)
	}
	slices.SortFunc(all, func(a, b layerRow) int {
		return cmp.Or(cmp.Compare(b.BusyS, a.BusyS), cmp.Compare(a.Layer, b.Layer), cmp.Compare(a.Op, b.Op))
	})
	base.Layer, base.BusyS, base.Share = "(no task)", idle/steps, idle/capacity
	return append(all, base), nil
}

// fmaPeak is the float32 operations per second of one core in a loop of fused
// multiply-adds.
func fmaPeak() float64 {
	return bestRate(func() float64 { return simd.PeakFMA[float32](simd.Widest(), 50_000) })
}

// copyBandwidth is the bytes read and written per second by one core that copies
// within its second-level cache.
func copyBandwidth() float64 {
	const bytes, passes = 128 << 10, 200
	src, dst := make([]byte, bytes), make([]byte, bytes)
	return bestRate(func() float64 {
		for range passes {
			copy(dst, src)
		}
		return 2 * bytes * passes
	})
}

// bestRate is how much something does per second in the best of several runs.
func bestRate(run func() (amount float64)) (perSecond float64) {
	for range 20 {
		start := time.Now()
		amount := run()
		perSecond = max(perSecond, amount/time.Since(start).Seconds())
	}
	return perSecond
}

func printLayers(w io.Writer, rows []layerRow) {
	if len(rows) == 0 {
		return
	}
	fmt.Fprint(w, "\n## Where the time of a training step goes\n\nRates are per core. The peak is that of a loop of fused multiply-adds, the copy one within a core's cache. The fastest of some runs of 50 steps.\n\n")
	fmt.Fprintln(w, "| network | batch | threads | layer | operation | tasks | time | share | GFLOP/s | of FMA peak | GB/s | of copy |")
	fmt.Fprintln(w, "| --- | ---: | ---: | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
	for i := range rows {
		r := &rows[i]
		if r.Op == "" {
			fmt.Fprintf(w, "| %s | %d | %d | %s | | | %s | %.1f %% | | | | |\n", r.Model, r.Batch, r.Threads, r.Layer, cli.ShowTime(r.BusyS), 100*r.Share)
			continue
		}
		fmt.Fprintf(w, "| %s | %d | %d | %s | %s | %d | %s | %.1f %% | %.1f | %.0f %% | %.1f | %.0f %% |\n", r.Model, r.Batch, r.Threads,
			r.Layer, r.Op, r.Tasks, cli.ShowTime(r.BusyS), 100*r.Share, r.FlopsPerS/1e9, 100*r.OfPeak, r.BytesPerS/1e9, 100*r.OfCopyRate)
	}
}
