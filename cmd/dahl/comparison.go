package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"dahl/dag"
	"dahl/energy"
	"dahl/plan"
	"dahl/platform"
	"dahl/schedule"
	"dahl/simulate"
)

// comparison lays a prediction beside a measurement of the same graph.
type comparison struct {
	Graph string `json:"graph"`

	Step pair `json:"step_s"`
	// Causes says why the prediction of the step is far off, as far as was measured.
	Causes []string `json:"causes,omitempty"`
	// UnrecordedStepS is what a step takes whose tasks are not timed, where the run had such.
	UnrecordedStepS float64 `json:"unrecorded_step_s,omitempty"`
	// PredictedUnrecordedStepS is its prediction, where that is not the one of Step.
	PredictedUnrecordedStepS float64 `json:"predicted_unrecorded_step_s,omitempty"`

	// The steps that the two schedules hold, and what they take together where these are as many.
	PredictedSteps int   `json:"predicted_steps"`
	MeasuredSteps  int   `json:"measured_steps"`
	Makespan       *pair `json:"makespan_s,omitempty"`

	StepJoules pair   `json:"joules_per_step"` // mean power times the step
	Grounds    string `json:"joules_grounds"`  // what they rest on
	Peak       pair   `json:"peak_bytes"`      // in the host's memory

	// The error of the step in parts, in percent: what vanishes when the simulator is
	// given the measured durations of the tasks was the kernel models', what vanishes when
	// it is given those of the copies too was the links'; what remains is the scheduling
	// model's.
	KernelErrorPercent     float64  `json:"kernel_error_percent"`
	CopyErrorPercent       *float64 `json:"copy_error_percent,omitempty"` // where something moves
	SchedulingErrorPercent float64  `json:"scheduling_error_percent"`

	Workers []workerComparison `json:"workers"`
	Kernels []kernelComparison `json:"kernels"`          // by measured time, largest first
	Ways    []wayComparison    `json:"ways,omitempty"`   // by memories
	Copies  []copyComparison   `json:"copies,omitempty"` // by measured time, largest first

	PredictedWaits *waitSummary `json:"predicted_waits"`
	MeasuredWaits  *waitSummary `json:"measured_waits"`

	MovedTasks int `json:"moved_tasks"` // measured on another worker than predicted
}

// pair is one quantity in both worlds.
type pair struct {
	Predicted    float64 `json:"predicted"`
	Measured     float64 `json:"measured"`
	ErrorPercent float64 `json:"error_percent"`
}

func newPair(predicted, measured float64) pair {
	return pair{predicted, measured, percent(predicted, measured)}
}

// workerComparison is the busy time per step of one worker.
type workerComparison struct {
	Worker string `json:"worker"`
	Busy   pair   `json:"busy_s_per_step"`
}

// kernelComparison is one operation and shape.
type kernelComparison struct {
	Op      string  `json:"op"`
	Shape   string  `json:"shape"`
	Variant string  `json:"variant"`
	Source  string  `json:"source"` // of the prediction
	Count   int     `json:"count_per_step"`
	Sum     pair    `json:"sum_s_per_step"` // of the spans, over the steps
	Median  pair    `json:"median_s"`
	MeanS   float64 `json:"measured_mean_s"`
	P95S    float64 `json:"measured_p95_s"`
	Share   float64 `json:"share"` // of the measured busy time
}

// compareSchedules compares two schedules of the first graph of a decision.
func compareSchedules(ctx context.Context, d *schedule.Decision, predicted, measured *schedule.Schedule) (*comparison, error) {
	p := d.Problem(0, 1, true)
	c := &comparison{
		Graph:          p.Graph.Name,
		Step:           newPair(plan.StepTime(predicted).Seconds(), plan.StepTime(measured).Seconds()),
		PredictedSteps: predicted.Steps, MeasuredSteps: measured.Steps,
	}
	if predicted.Steps == measured.Steps {
		both := newPair(predicted.Makespan.Seconds(), measured.Makespan.Seconds())
		c.Makespan = &both
	}
	host := p.Platform.HostMemory()
	c.Peak = newPair(float64(predicted.PeakBytes[host]), float64(measured.PeakBytes[host]))
	var joules [2]float64
	var waits [2]*waitSummary
	for i, s := range []*schedule.Schedule{predicted, measured} {
		q := *p
		q.Steps = s.Steps
		report, err := energy.FromSchedule(s, &q)
		if err != nil {
			return nil, err
		}
		joules[i], c.Grounds = report.MeanWatts*plan.StepTime(s).Seconds(), report.Grounds()
		waits[i] = newWaitSummary(&q, s)
	}
	c.StepJoules = newPair(joules[0], joules[1])
	c.PredictedWaits, c.MeasuredWaits = waits[0], waits[1]
	if err := c.splitError(ctx, d, predicted, measured); err != nil {
		return nil, fmt.Errorf("feeding the measured durations back: %w", err)
	}
	c.compareWorkers(p, predicted, measured)
	c.compareKernels(p, predicted, measured)
	c.compareCopies(p, predicted, measured)
	return c, nil
}

// splitError finds what part the models of kernels, links and scheduling have in the error
// of the step.
func (c *comparison) splitError(ctx context.Context, d *schedule.Decision, predicted, measured *schedule.Schedule) error {
	opt := simulate.Options{Timed: true, Durations: durationsOf(d.Problem(0, 1, true), measured)}
	fed, err := simulate.Run(ctx, d, 0, measured.Steps, opt)
	if err != nil {
		return err
	}
	c.KernelErrorPercent = percent(plan.StepTime(predicted).Seconds(), plan.StepTime(fed).Seconds())
	if len(measured.Transfers) > 0 {
		opt.Moving = movingOf(measured)
		moved, err := simulate.Run(ctx, d, 0, measured.Steps, opt)
		if err != nil {
			return err
		}
		off := percent(plan.StepTime(fed).Seconds(), plan.StepTime(moved).Seconds())
		c.CopyErrorPercent, fed = &off, moved
	}
	c.SchedulingErrorPercent = percent(plan.StepTime(fed).Seconds(), plan.StepTime(measured).Seconds())
	return nil
}

// durationsOf are what the instances of a schedule took.
func durationsOf(p *schedule.Problem, s *schedule.Schedule) func(schedule.Instance, platform.WorkerID) (time.Duration, bool) {
	tasks := p.Graph.NumTasks()
	durations := make([]time.Duration, tasks*s.Steps)
	for _, span := range s.Spans {
		durations[int(span.Step)*tasks+int(span.Task)] = span.End - span.Start
	}
	return func(i schedule.Instance, _ platform.WorkerID) (time.Duration, bool) {
		return durations[int(i.Step)*tasks+int(i.Task)], true
	}
}

func (c *comparison) compareWorkers(p *schedule.Problem, predicted, measured *schedule.Schedule) {
	workers := len(p.Platform.Workers)
	pb, mb := busyPerStep(predicted, workers), busyPerStep(measured, workers)
	for w := range p.Platform.Workers {
		c.Workers = append(c.Workers, workerComparison{p.Platform.Workers[w].Name, newPair(pb[w], mb[w])})
	}
	where := make([]platform.WorkerID, p.Graph.NumTasks())
	for _, s := range predicted.Spans {
		if s.Step == 0 {
			where[s.Task] = s.Worker
		}
	}
	for _, s := range measured.Spans {
		if s.Step == 0 && where[s.Task] != s.Worker {
			c.MovedTasks++
		}
	}
}

func (c *comparison) compareKernels(p *schedule.Problem, predicted, measured *schedule.Schedule) {
	type key struct{ op, shape string }
	keyOf := func(t dag.TaskID) key { return key{p.Graph.Tasks[t].Op, p.Graph.Tasks[t].Shape} }
	times := map[key][]float64{}
	var busy float64
	for _, s := range measured.Spans {
		d := (s.End - s.Start).Seconds()
		times[keyOf(s.Task)] = append(times[keyOf(s.Task)], d)
		busy += d
	}
	expected := map[key][]float64{}
	for _, s := range predicted.Spans {
		expected[keyOf(s.Task)] = append(expected[keyOf(s.Task)], (s.End - s.Start).Seconds())
	}
	count := map[key]int{}
	var order []key
	first := map[key]dag.TaskID{}
	for t := range p.Graph.Tasks {
		k := keyOf(dag.TaskID(t))
		if count[k] == 0 {
			order = append(order, k)
			first[k] = dag.TaskID(t)
		}
		count[k]++
	}
	for _, k := range order {
		if len(times[k]) == 0 || len(expected[k]) == 0 {
			continue
		}
		slices.Sort(times[k])
		slices.Sort(expected[k])
		row := kernelComparison{Op: k.op, Shape: k.shape, Count: count[k],
			Median: newPair(quantile(expected[k], 0.5), quantile(times[k], 0.5)), P95S: quantile(times[k], 0.95)}
		sum := total(times[k])
		row.Sum = newPair(total(expected[k])/float64(predicted.Steps), sum/float64(measured.Steps))
		row.MeanS, row.Share = sum/float64(len(times[k])), sum/busy
		for d := range p.Platform.Devices {
			if cost, ok := p.Costs.Of(first[k], platform.DeviceID(d)); ok {
				row.Variant, row.Source = cost.Variant, string(cost.Source)
				break
			}
		}
		c.Kernels = append(c.Kernels, row)
	}
	slices.SortStableFunc(c.Kernels, func(a, b kernelComparison) int { return cmp.Compare(b.Share, a.Share) })
}

// total is the sum.
func total(list []float64) (sum float64) {
	for _, v := range list {
		sum += v
	}
	return sum
}

// quantile of a sorted, non-empty list: the smallest value with at least the
// fraction q of the list at or below it.
func quantile(sorted []float64, q float64) float64 {
	i := int(q * float64(len(sorted)))
	return sorted[min(i, len(sorted)-1)]
}

// print writes the comparison as tables; shown says which steps of the run are measured.
func (c *comparison) print(w io.Writer, shown *shownSteps) {
	if shown != nil && shown.String() != "" {
		fmt.Fprintf(w, "measured are %s\n", shown)
	}
	fmt.Fprintf(w, "%-14s %12s %12s %9s\n", c.Graph, "predicted", "measured", "error")
	row := func(what string, p pair, show func(float64) string) {
		fmt.Fprintf(w, "%-14s %12s %12s %+8.1f %%\n", what, show(p.Predicted), show(p.Measured), p.ErrorPercent)
	}
	showTime := func(s float64) string { return shortTime(seconds(s)) }
	fmt.Fprintf(w, "%-14s %12s %12s %+8.1f %%%s\n", "step", showTime(c.Step.Predicted), showTime(c.Step.Measured), c.Step.ErrorPercent, causesText(c.Causes))
	switch {
	case c.PredictedUnrecordedStepS > 0:
		row("  unrecorded", newPair(c.PredictedUnrecordedStepS, c.UnrecordedStepS), showTime)
	case c.UnrecordedStepS > 0:
		fmt.Fprintf(w, "%-14s %12s %12s\n", "  unrecorded", "", showTime(c.UnrecordedStepS))
	}
	copies := ""
	if c.CopyErrorPercent != nil {
		copies = fmt.Sprintf("copies %+.1f %%, ", *c.CopyErrorPercent)
	}
	fmt.Fprintf(w, "%-14s kernels %+.1f %%, %sscheduling %+.1f %%; %d tasks ran elsewhere than predicted\n", "  of which", c.KernelErrorPercent, copies, c.SchedulingErrorPercent, c.MovedTasks)
	if c.Makespan != nil {
		row(fmt.Sprintf("%d steps", c.MeasuredSteps), *c.Makespan, showTime)
	}
	fmt.Fprintf(w, "%-14s %12s %12s %+8.1f %%  (%s)\n", "J per step", threeDigits(c.StepJoules.Predicted), threeDigits(c.StepJoules.Measured), c.StepJoules.ErrorPercent, c.Grounds)
	row("live peak", c.Peak, func(b float64) string { return shortBytes(int64(b)) })
	for _, b := range c.Workers {
		row("busy "+b.Worker, b.Busy, showTime)
	}
	for _, way := range c.Ways {
		row(way.From+" to "+way.To, way.Busy, showTime)
	}
	c.printKernels(w)
	c.printCopies(w)
	fmt.Fprintln(w, "\npredicted")
	c.PredictedWaits.print(w)
	fmt.Fprintln(w, "measured")
	c.MeasuredWaits.print(w)
}

// printKernels writes a line for each kernel. Times of a step are sums of spans, so that
// they add up to what the workers are busy.
func (c *comparison) printKernels(w io.Writer) {
	showTime := func(s float64) string { return shortTime(seconds(s)) }
	fmt.Fprintf(w, "\n%-18s %-44s %-7s %-9s %21s %19s %8s %17s\n", "", "", "", "", "in a step:", "", "", "one call:")
	fmt.Fprintf(w, "%-18s %-44s %-7s %-9s %5s %11s %11s %9s %6s %11s %11s\n", "kernel", "shape", "variant", "model", "calls", "predicted", "measured", "error", "share", "median", "p95")
	for _, k := range c.Kernels {
		fmt.Fprintf(w, "%-18s %-44s %-7s %-9s %5d %11s %11s %+8.1f%% %5.1f%% %11s %11s\n", k.Op, k.Shape, k.Variant, k.Source, k.Count,
			showTime(k.Sum.Predicted), showTime(k.Sum.Measured), k.Sum.ErrorPercent, 100*k.Share, showTime(k.Median.Measured), showTime(k.P95S))
	}
}
