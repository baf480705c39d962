package plan

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"dahl/dag"
	"dahl/energy"
	"dahl/platform"
	"dahl/schedule"
	"dahl/simulate"
	"dahl/stats"
)

// Comparison compares a prediction with a measurement of the same graph: the steps of the measured schedule, in both worlds.
// Times are in seconds. Numbers of a step are means over these steps; an error is the excess of the prediction over the measurement.
type Comparison struct {
	Graph string `json:"graph"`

	// The clocks of devices that did not run at their first, as "device=clock".
	PredictedClocks []string `json:"predicted_clocks,omitempty"`
	MeasuredClocks  []string `json:"measured_clocks,omitempty"`
	// IgnoredClocks are those that the measured run wanted and went on without, at whatever clocks
	// the machine had.
	IgnoredClocks []string `json:"ignored_clocks,omitempty"`

	Steps    int  `json:"steps"` // that are compared
	Makespan Pair `json:"makespan_s"`
	Step     Pair `json:"step_s"`
	// Causes says why the prediction of the run's step, else of these, is far off, where whoever measured it knows.
	Causes []string `json:"causes,omitempty"`
	// RunStep covers all of the measured run: the mean of what counts of it ([Totals].Counted). Whoever knows
	// the run sets it.
	RunStep *Pair `json:"run_step_s,omitempty"`
	// Run and RunJoules cover the whole run with its evaluations. Nil means that nobody predicted it.
	Run       *Pair `json:"run_s,omitempty"`
	RunJoules *Pair `json:"run_joules,omitempty"` // by the platform's powers

	StepJoules Pair   `json:"joules_per_step"` // by the platform's powers
	Grounds    string `json:"joules_grounds"`  // what they rest on
	// Metered compares the meters' readings over the measured run with the model over the same span.
	Metered []energy.MeterError `json:"metered,omitempty"`
	// Ranks has the measurements of the processes of a cluster.
	Ranks []RankMeasured `json:"ranks,omitempty"`
	Peak  Pair           `json:"peak_bytes"` // in the host's memory

	// The error of the step in parts, in percent: with the measured durations of tasks in the simulator the kernel models' part
	// vanishes, with measured copies too the links'; what remains is the scheduling
	// model's.
	KernelErrorPercent     float64  `json:"kernel_error_percent"`
	CopyErrorPercent       *float64 `json:"copy_error_percent,omitempty"` // where something moves
	SchedulingErrorPercent float64  `json:"scheduling_error_percent"`

	Workers []WorkerComparison   `json:"workers"`
	Busy    Pair                 `json:"busy_s_per_step"`  // of all workers, and so of all kernels
	Kernels []KernelComparison   `json:"kernels"`          // by measured time, largest first
	Ways    []WayComparison      `json:"ways,omitempty"`   // by memories
	Copies  []TransferComparison `json:"copies,omitempty"` // by measured time, largest first

	PredictedWaits *Waits `json:"predicted_waits"`
	MeasuredWaits  *Waits `json:"measured_waits"`

	PredictedStates *States `json:"predicted_states,omitempty"`
	MeasuredStates  *States `json:"measured_states,omitempty"`

	PredictedNodes *Nodes `json:"predicted_nodes,omitempty"`
	MeasuredNodes  *Nodes `json:"measured_nodes,omitempty"`

	MovedTasks int `json:"moved_tasks"` // measured on another worker than predicted

	Predicted *schedule.Schedule `json:"-"` // of these steps
}

// Pair is one quantity in both worlds.
type Pair struct {
	Predicted    float64 `json:"predicted"`
	Measured     float64 `json:"measured"`
	ErrorPercent float64 `json:"error_percent"`
}

// NewPair is a prediction with its error.
func NewPair(predicted, measured float64) Pair {
	return Pair{predicted, measured, ErrorPercent(predicted, measured)}
}

// ErrorPercent is the error of a prediction, in percent of the measurement.
func ErrorPercent(predicted, measured float64) float64 {
	if measured == 0 {
		return 0
	}
	return 100 * (predicted/measured - 1)
}

// WorkerComparison is the busy time per step of one worker.
type WorkerComparison struct {
	Worker string `json:"worker"`
	Busy   Pair   `json:"busy_s_per_step"`
}

// KernelComparison is one operation, element type and shape on one device.
type KernelComparison struct {
	Op      string  `json:"op"`
	Type    string  `json:"type"`
	Shape   string  `json:"shape"`
	Device  string  `json:"device"`
	Variant string  `json:"variant"`
	Source  string  `json:"source"` // of the prediction
	Count   float64 `json:"count_per_step"`
	Sum     Pair    `json:"sum_s_per_step"` // of the spans, over the steps
	Median  Pair    `json:"median_s"`
	MeanS   float64 `json:"measured_mean_s"`
	P95S    float64 `json:"measured_p95_s"`
	Share   float64 `json:"share"` // of the measured busy time
}

// Compare compares two schedules of the first graph of a decision, with timed steps, and splits the error of the step.
func Compare(ctx context.Context, d *schedule.Decision, predicted, measured *schedule.Schedule) (*Comparison, error) {
	c, err := CompareUnsplit(ctx, d, predicted, measured)
	if err != nil {
		return nil, err
	}
	if err := c.splitError(ctx, d, measured); err != nil {
		return nil, fmt.Errorf("feeding the measured durations back: %w", err)
	}
	return c, nil
}

// CompareUnsplit is [Compare] without the parts of the error. A prediction of another number of steps is simulated anew.
func CompareUnsplit(ctx context.Context, d *schedule.Decision, predicted, measured *schedule.Schedule) (*Comparison, error) {
	if predicted.Steps != measured.Steps {
		var err error
		if predicted, err = simulate.Run(ctx, d, 0, measured.Steps, simulate.Options{Timed: true}); err != nil {
			return nil, err
		}
	}
	p := d.Problem(0, measured.Steps, true)
	c := &Comparison{Graph: p.Graph.Name, Predicted: predicted, Steps: measured.Steps,
		Makespan: NewPair(predicted.Makespan.Seconds(), measured.Makespan.Seconds()), Step: NewPair(meanStep(predicted), meanStep(measured))}
	host := p.Platform.HostMemory()
	c.Peak = NewPair(float64(predicted.PeakBytes[host]), float64(measured.PeakBytes[host]))
	var joules [2]float64
	var waits [2]*Waits
	var states [2]*States
	var nodes [2]*Nodes
	for i, s := range []*schedule.Schedule{predicted, measured} {
		report, err := energy.FromSchedule(s, p)
		if err != nil {
			return nil, err
		}
		joules[i], c.Grounds, waits[i] = report.TotalJoules/float64(s.Steps), report.Grounds(), WaitsOf(p, s)
		states[i], nodes[i] = StatesOf(p, s, report), NodesOf(p, s, report)
	}
	c.StepJoules = NewPair(joules[0], joules[1])
	c.PredictedWaits, c.MeasuredWaits = waits[0], waits[1]
	c.PredictedStates, c.MeasuredStates = states[0], states[1]
	c.PredictedNodes, c.MeasuredNodes = nodes[0], nodes[1]
	c.compareWorkers(p, predicted, measured)
	c.Kernels = Kernels(p, predicted, measured)
	c.compareWays(p, predicted, measured)
	c.compareTransfers(p, predicted, measured)
	return c, nil
}

// meanStep returns the mean time of a step of a schedule, including the first.
func meanStep(s *schedule.Schedule) float64 { return s.Makespan.Seconds() / float64(max(1, s.Steps)) }

// splitError finds what part the models of kernels, links and scheduling have in the error
// of the step.
func (c *Comparison) splitError(ctx context.Context, d *schedule.Decision, measured *schedule.Schedule) error {
	opt := simulate.Options{Timed: true, Durations: durationsOf(d.Problem(0, 1, true), measured)}
	fed, err := simulate.Run(ctx, d, 0, measured.Steps, opt)
	if err != nil {
		return err
	}
	c.KernelErrorPercent = stepError(c.Predicted, fed)
	if len(measured.Transfers) > 0 {
		opt.Moving = movingOf(measured)
		moved, err := simulate.Run(ctx, d, 0, measured.Steps, opt)
		if err != nil {
			return err
		}
		copies := stepError(fed, moved)
		c.CopyErrorPercent, fed = &copies, moved
	}
	c.SchedulingErrorPercent = stepError(fed, measured)
	return nil
}

// stepError is the error of a predicted step, in percent.
func stepError(predicted, measured *schedule.Schedule) float64 {
	return ErrorPercent(meanStep(predicted), meanStep(measured))
}

// durationsOf returns the measured times of tasks.
func durationsOf(p *schedule.Problem, s *schedule.Schedule) func(dag.Instance, platform.WorkerID) (time.Duration, bool) {
	tasks := p.Graph.NumTasks()
	durations := make([]time.Duration, tasks*s.Steps)
	for _, span := range s.Spans {
		durations[int(span.Step)*tasks+int(span.Task)] = span.End - span.Start
	}
	return func(i dag.Instance, _ platform.WorkerID) (time.Duration, bool) {
		return durations[int(i.Step)*tasks+int(i.Task)], true
	}
}

func (c *Comparison) compareWorkers(p *schedule.Problem, predicted, measured *schedule.Schedule) {
	workers := len(p.Platform.Workers)
	expected, took := BusyPerStep(predicted, workers), BusyPerStep(measured, workers)
	for w := range p.Platform.Workers {
		c.Workers = append(c.Workers, WorkerComparison{p.Platform.Workers[w].Name, NewPair(expected[w], took[w])})
	}
	c.Busy = NewPair(Total(expected), Total(took))
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

// BusyPerStep is how many seconds of a step each worker runs kernels.
func BusyPerStep(s *schedule.Schedule, workers int) []float64 {
	busy := make([]float64, workers)
	for _, span := range s.Spans {
		busy[span.Worker] += (span.End - span.Start).Seconds() / float64(s.Steps)
	}
	return busy
}

// BusyShares is the part of a schedule in which the units of each device run kernels, by the name of the device.
func BusyShares(p *platform.Platform, s *schedule.Schedule) map[string]float64 {
	shares := map[string]float64{}
	step := meanStep(s)
	for w, busy := range BusyPerStep(s, len(p.Workers)) {
		d := &p.Devices[p.Workers[w].Device]
		shares[d.Name] += 0
		if step > 0 {
			shares[d.Name] = min(1, shares[d.Name]+busy/step/float64(d.Count))
		}
	}
	return shares
}

// Kernels compares every operation, element type and shape on every device of two schedules of a graph, the largest share of the
// measured busy time first. It leaves out what only one of them has there.
func Kernels(p *schedule.Problem, predicted, measured *schedule.Schedule) (kernels []KernelComparison) {
	type kernel struct {
		op, shape string
		dtype     dag.DType
		device    platform.DeviceID
	}
	first := map[kernel]dag.TaskID{} // the one that says the cost
	of := func(s *schedule.Span) (kernel, time.Duration) {
		t := &p.Graph.Tasks[s.Task]
		k := kernel{t.Op, t.Shape, t.Type, p.Platform.Workers[s.Worker].Device}
		if known, ok := first[k]; !ok || s.Task < known {
			first[k] = s.Task
		}
		return k, s.End - s.Start
	}
	expected, _ := TimesOf(predicted.Spans, of)
	times, busy := TimesOf(measured.Spans, of)
	for k, took := range times {
		if len(expected[k]) == 0 {
			continue
		}
		sum := Total(took)
		row := KernelComparison{Op: k.op, Type: k.dtype.String(), Shape: k.shape, Device: p.Platform.Devices[k.device].Name, Count: float64(len(took)) / float64(measured.Steps),
			Sum:    NewPair(Total(expected[k])/float64(predicted.Steps), sum/float64(measured.Steps)),
			Median: NewPair(stats.Median(expected[k]), stats.Median(took)),
			MeanS:  sum / float64(len(took)), P95S: stats.Quantile(took, 0.95)}
		if busy > 0 {
			row.Share = sum / busy
		}
		if cost, ok := p.Costs.Of(first[k], k.device); ok {
			row.Variant, row.Source = cost.Variant, string(cost.Source)
		}
		kernels = append(kernels, row)
	}
	slices.SortFunc(kernels, func(a, b KernelComparison) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), cmp.Compare(a.Op, b.Op), cmp.Compare(a.Shape, b.Shape), cmp.Compare(a.Type, b.Type), cmp.Compare(a.Device, b.Device))
	})
	return kernels
}

// TimesOf groups the seconds of calls or copies by a key, sorted, and adds them up.
func TimesOf[T any, K comparable](list []T, of func(*T) (K, time.Duration)) (times map[K][]float64, all float64) {
	times = map[K][]float64{}
	for i := range list {
		k, took := of(&list[i])
		times[k] = append(times[k], took.Seconds())
		all += took.Seconds()
	}
	for _, list := range times {
		slices.Sort(list)
	}
	return times, all
}

// Total is the sum.
func Total(list []float64) (sum float64) {
	for _, v := range list {
		sum += v
	}
	return sum
}
