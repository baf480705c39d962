package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"dahl/cmd/cli"
	"dahl/nn"
	"dahl/schedule"
	"dahl/train"
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
func (s *ourSide) layers(ctx context.Context, threads int) ([]layerRow, error) {
	graph := s.graph(modeTrain)
	g := s.w.Program.Graphs[graph]
	const steps, runs = 50, 7
	batch := nn.BatchOf(g)
	var sched *schedule.Schedule
	for range runs {
		run, err := s.t.RunSteps(ctx, graph, steps, train.Shuffled(s.data.Len(), batch*steps, s.w.Options.Seed), true)
		if err != nil {
			return nil, err
		}
		if sched == nil || run.Makespan < sched.Makespan {
			sched = run
		}
	}
	peak, copyRate := fmaPeak(), copyBandwidth()
	type key struct{ layer, op string }
	rows := map[key]*layerRow{}
	flops, moved := map[key]float64{}, map[key]float64{}
	var busy time.Duration
	for i := range sched.Spans {
		span := &sched.Spans[i]
		task := &g.Tasks[span.Task]
		k := key{task.Labels.Layer, task.Op}
		if rows[k] == nil {
			rows[k] = &layerRow{Model: s.w.Model.Name, Batch: batch, Threads: threads, Layer: k.layer, Op: k.op}
		}
		rows[k].Tasks++
		rows[k].BusyS += (span.End - span.Start).Seconds()
		busy += span.End - span.Start
		flops[k] += task.Flops
		moved[k] += float64(task.MovedBytes)
	}
	capacity := sched.Makespan.Seconds() * float64(threads)
	var all []layerRow
	for k, r := range rows {
		r.FlopsPerS, r.BytesPerS = flops[k]/r.BusyS, moved[k]/r.BusyS
		r.OfPeak, r.OfCopyRate = r.FlopsPerS/peak, r.BytesPerS/copyRate
		r.Share = r.BusyS / capacity
		r.Tasks /= steps
		r.BusyS /= steps
		all = append(all, *r)
	}
	slices.SortFunc(all, func(a, b layerRow) int {
		return cmp.Or(cmp.Compare(b.BusyS, a.BusyS), cmp.Compare(a.Layer, b.Layer), cmp.Compare(a.Op, b.Op))
	})
	idle := capacity - busy.Seconds()
	return append(all, layerRow{Model: s.w.Model.Name, Batch: batch, Threads: threads, Layer: "(no task)", BusyS: idle / steps, Share: idle / capacity}), nil
}

// copyBandwidth is the bytes read and written per second by one core that copies
// within its second-level cache: the best of several.
func copyBandwidth() float64 {
	const bytes, passes = 128 << 10, 200
	src, dst := make([]byte, bytes), make([]byte, bytes)
	best := time.Duration(0)
	for range 20 {
		start := time.Now()
		for range passes {
			copy(dst, src)
		}
		if took := time.Since(start); best == 0 || took < best {
			best = took
		}
	}
	return 2 * bytes * passes / best.Seconds()
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
			fmt.Fprintf(w, "| %s | %d | %d | %s | | | %s | %.1f %% | | | | |\n", r.Model, r.Batch, r.Threads, r.Layer, cli.ShortTime(cli.Seconds(r.BusyS)), 100*r.Share)
			continue
		}
		fmt.Fprintf(w, "| %s | %d | %d | %s | %s | %d | %s | %.1f %% | %.1f | %.0f %% | %.1f | %.0f %% |\n", r.Model, r.Batch, r.Threads,
			r.Layer, r.Op, r.Tasks, cli.ShortTime(cli.Seconds(r.BusyS)), 100*r.Share, r.FlopsPerS/1e9, 100*r.OfPeak, r.BytesPerS/1e9, 100*r.OfCopyRate)
	}
}
