package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dahl/execute"
	"dahl/nn"
	"dahl/schedule"
)

func newBench(*app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "measure dahl itself",
		Args:  cobra.NoArgs,
	}
	cmd.AddCommand(newBenchAccuracy(), newBenchTasks())
	cmd.AddCommand(newBenchPeers(), newBenchGranularity(), newBenchBatch())
	return cmd
}

// accuracyOptions say which predictions are put to the test.
type accuracyOptions struct {
	models   []string
	batches  []int
	workers  []int
	dtype    string
	perModel time.Duration // of calibration
	repeats  int
	out      string
}

func newBenchAccuracy() *cobra.Command {
	var a accuracyOptions
	cmd := &cobra.Command{
		Use:   "accuracy",
		Short: "predicted against measured step time, model by model",
		Long: `accuracy calibrates this machine for each network and batch size, predicts the
step time, and measures it in several runs on fresh memory. The table shows each
error beside the spread of the repeated measurements: an error within the spread
cannot be told from noise. The file of --out also has a line for every kernel that
matters.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.run(cmd.Context(), cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&a.models, "models", []string{"digits-cnn", "dahl-cnn", "lenet5", "mlp", "cifar-cnn"}, "networks")
	f.IntSliceVar(&a.batches, "batches", []int{32, 64, 128}, "batch sizes")
	f.IntSliceVar(&a.workers, "workers", []int{1, 2}, "numbers of CPU cores")
	f.StringVar(&a.dtype, "dtype", "float32", "element type: float32 or float64")
	f.DurationVar(&a.perModel, "time", 6*time.Second, "about how long to calibrate for each row")
	f.IntVar(&a.repeats, "repeats", 5, "measured runs of each row")
	f.StringVar(&a.out, "out", "", "also write the table as a Markdown `file`")
	return cmd
}

// accuracyRow is one line of the table. Errors and the spread are fractions.
type accuracyRow struct {
	model               string
	batch, workers      int
	predicted, measured time.Duration
	spread              float64
	kernels, scheduling float64
	kernelMedian        float64 // median over kernels of |error|, weighted by their time
	kernelRows          []kernelComparison
}

// minKernelShare is the part of the busy time from which a kernel gets a line of its own.
const minKernelShare = 0.02

// printKernels writes the lines of the kernels that matter in a row.
func (r *accuracyRow) printKernels(w io.Writer) {
	for _, k := range r.kernelRows {
		if k.Share < minKernelShare {
			continue
		}
		fmt.Fprintf(w, "| %s | %d | %d | %s | %s | %s | %s | %s | %s | %+.1f %% | %.0f %% |\n", r.model, r.batch, r.workers, k.Op, k.Shape, k.Variant,
			shortTime(seconds(k.Median.Predicted)), shortTime(seconds(k.Median.Measured)), shortTime(seconds(k.P95S)), k.Median.ErrorPercent, 100*k.Share)
	}
}

func (r *accuracyRow) err() float64 { return float64(r.predicted)/float64(r.measured) - 1 }

func (a *accuracyOptions) run(ctx context.Context, stdout io.Writer) error {
	if a.repeats < 1 {
		return inputErrorf("--repeats %d: want at least 1", a.repeats)
	}
	var table strings.Builder
	both := io.MultiWriter(stdout, &table)
	fmt.Fprintln(both, "| network | batch | workers | predicted step | measured step | error | repeat spread | of which kernels | scheduling | median kernel error |")
	fmt.Fprintln(both, "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
	var rows []accuracyRow
	for _, model := range a.models {
		for _, batch := range a.batches {
			for _, workers := range a.workers {
				r, err := a.row(ctx, model, batch, workers)
				if err != nil {
					return fmt.Errorf("%s, batch %d, %d workers: %w", model, batch, workers, err)
				}
				rows = append(rows, *r)
				fmt.Fprintf(both, "| %s | %d | %d | %s | %s | %+.1f %% | %.1f %% | %+.1f %% | %+.1f %% | %.1f %% |\n", r.model, r.batch, r.workers,
					shortTime(r.predicted), shortTime(r.measured), 100*r.err(), 100*r.spread, 100*r.kernels, 100*r.scheduling, 100*r.kernelMedian)
			}
		}
	}
	errs := make([]float64, len(rows))
	for i := range rows {
		errs[i] = math.Abs(rows[i].err())
	}
	slices.Sort(errs)
	if len(errs) > 0 {
		fmt.Fprintf(both, "\nMedian absolute error %.1f %%, 90th percentile %.1f %%, over %d rows.\n", 100*quantile(errs, 0.5), 100*quantile(errs, 0.9), len(errs))
	}
	if a.out == "" {
		return nil
	}
	fmt.Fprintf(&table, "\n## Kernels with at least %.0f %% of the busy time\n\n", 100*minKernelShare)
	fmt.Fprintln(&table, "| network | batch | workers | operation | shape | variant | predicted | measured median | p95 | error | share |")
	fmt.Fprintln(&table, "| --- | ---: | ---: | --- | --- | --- | ---: | ---: | ---: | ---: | ---: |")
	for i := range rows {
		rows[i].printKernels(&table)
	}
	return writeFile(a.out, []byte(table.String()))
}

// row calibrates, predicts and measures one case.
func (a *accuracyOptions) row(ctx context.Context, model string, batch, workers int) (*accuracyRow, error) {
	o := &options{Model: model, Batch: batch, Workers: workers, Policy: "heft", DType: a.dtype, Epochs: 1, Seed: 1}
	m, train, test, err := trainingData(o)
	if err != nil {
		return nil, err
	}
	p, err := execute.Detect()
	if err != nil {
		return nil, err
	}
	if p, err = withWorkers(p, workers); err != nil {
		return nil, err
	}
	c, err := calibrate(ctx, o, m, p, train, test, calibration{time: a.perModel})
	if err != nil {
		return nil, err
	}
	w, err := newWorkload(o, m, c.Platform, sampleCounts(train, test))
	if err != nil {
		return nil, err
	}
	schedules, err := a.measure(ctx, w, train, test)
	if err != nil {
		return nil, err
	}
	measured := schedules[len(schedules)/2]
	predicted, err := w.simulateGraph(ctx, 0, measured.Steps)
	if err != nil {
		return nil, err
	}
	cmpd, err := compareSchedules(ctx, w.mainProblem(measured.Steps), w.parts[0].plan, predicted, measured)
	if err != nil {
		return nil, err
	}
	r := &accuracyRow{model: model, batch: batch, workers: workers, predicted: stepTime(predicted), measured: stepTime(measured)}
	first, last := stepTime(schedules[0]), stepTime(schedules[len(schedules)-1])
	r.spread = float64(last-first) / float64(r.measured)
	r.kernels, r.scheduling = cmpd.KernelErrorPercent/100, cmpd.SchedulingErrorPercent/100
	r.kernelRows, r.kernelMedian = cmpd.Kernels, weightedMedianError(cmpd.Kernels)
	return r, nil
}

// measure runs the training step in several runs, each compiled and allocated
// anew, and returns their schedules by step time.
func (a *accuracyOptions) measure(ctx context.Context, w *workload, train, test *nn.Dataset) ([]*schedule.Schedule, error) {
	const minSteps, maxSteps = 20, 400
	var runs []*schedule.Schedule
	for range a.repeats {
		t, err := newTrainer(w, train, test, nil)
		if err != nil {
			return nil, err
		}
		guess, err := w.simulateGraph(ctx, 0, 2)
		if err == nil {
			steps := int(max(minSteps, min(maxSteps, time.Second/max(1, stepTime(guess)))))
			t.feeder.begin(cyclic(train.Len(), batchOf(w.program.Graphs[0])*steps), batchOf(w.program.Graphs[0]), steps)
			var s *schedule.Schedule
			if s, err = t.runner.Run(ctx, 0, steps, true); err == nil {
				runs = append(runs, s)
			}
		}
		t.runner.Close()
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(runs, func(x, y *schedule.Schedule) int { return cmp.Compare(stepTime(x), stepTime(y)) })
	return runs, nil
}

// weightedMedianError is the absolute kernel error below which half of the
// measured kernel time lies, as a fraction.
func weightedMedianError(kernels []kernelComparison) float64 {
	sorted := slices.Clone(kernels)
	slices.SortFunc(sorted, func(x, y kernelComparison) int {
		return cmp.Compare(math.Abs(x.Median.ErrorPercent), math.Abs(y.Median.ErrorPercent))
	})
	share := 0.0
	for _, k := range sorted {
		if share += k.Share; share >= 0.5 {
			return math.Abs(k.Median.ErrorPercent) / 100
		}
	}
	return 0
}
