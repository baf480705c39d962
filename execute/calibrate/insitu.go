package calibrate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"dahl/dag"
	"dahl/execute"
	"dahl/platform"
	"dahl/schedule"
	"dahl/stats"
)

// InSituOptions says which steps to measure.
type InSituOptions struct {
	Graph  int // of the runner's program
	Warmup int // steps before the measured ones; zero means 5
	Steps  int // zero means 50
}

const (
	defaultWarmup = 5
	defaultSteps  = 50
)

// StepTimes collects the times of calls inside real steps, over several runs. The zero value is
// empty.
type StepTimes struct {
	calls []*callTimes
	runs  []time.Duration  // steady step time of each run
	gaps  map[string]*gaps // by device
	spin  time.Duration    // a worker that waits longer than this sleeps; zero means never
	// timing is the time that the record adds to a step per task of a device, once for each turn.
	timing []time.Duration
}

// gaps are the delays from the moment at which a worker could have started a task to its start,
// by how long the worker had waited.
type gaps struct{ dispatch, handoff, wake []time.Duration }

// callTimes are the times of one call: in the first step of a run, and in its steady ones.
type callTimes struct {
	model         platform.Model // without times
	first, steady []time.Duration
	runs          []runMean // means of the steady steps
}

// runMean is the mean of a call in one run.
type runMean struct {
	run  int // index into StepTimes.runs
	mean time.Duration
}

// InSitu runs real steps of a runner's graph and adds the times of its calls to the
// collection. They are times of tasks among their neighbours, with the caches, memory traffic and
// busy cores of this program on this number of workers. The runner must be ready to run:
// parameters, data and hooks in place. The steps train its parameters. Several runners, each
// compiled and allocated anew, show the difference from run to run.
//
// Use it to predict the same graph on as many workers. It measures only the variants of the
// runner. To choose among variants, or for other shapes, use [Run].
func InSitu(ctx context.Context, r *execute.Runner, opt InSituOptions, into *StepTimes) error {
	first, err := r.Run(ctx, opt.Graph, cmp.Or(opt.Warmup, defaultWarmup), true)
	if err != nil {
		return fmt.Errorf("calibrate in situ: warm-up: %w", err)
	}
	s, err := r.Run(ctx, opt.Graph, cmp.Or(opt.Steps, defaultSteps), true)
	if err != nil {
		return fmt.Errorf("calibrate in situ: %w", err)
	}
	into.add(r, opt.Graph, first, s)
	return nil
}

// add adds the first step of one run and all steps of another.
func (st *StepTimes) add(r *execute.Runner, graph int, first, steady *schedule.Schedule) {
	type call struct {
		task   dag.TaskID
		device platform.DeviceID
	}
	p, byTask := r.Platform(), map[call]*callTimes{}
	times := func(sp *schedule.Span) *callTimes {
		c := call{sp.Task, p.Workers[sp.Worker].Device}
		if byTask[c] == nil {
			byTask[c] = st.timesOf(r.Model(graph, c.task, c.device))
		}
		return byTask[c]
	}
	for i := range first.Spans {
		if sp := &first.Spans[i]; sp.Step == 0 {
			t := times(sp)
			t.first = append(t.first, sp.End-sp.Start)
		}
	}
	before := map[*callTimes]int{}
	for i := range steady.Spans {
		sp := &steady.Spans[i]
		t := times(sp)
		if _, ok := before[t]; !ok {
			before[t] = len(t.steady)
		}
		t.steady = append(t.steady, sp.End-sp.Start)
	}
	for t, n := range before {
		t.runs = append(t.runs, runMean{len(st.runs), meanOf(t.steady[n:])})
	}
	st.runs = append(st.runs, cmp.Or(steady.Period, steady.Makespan))
	st.spin = r.Spin()
	addGaps(steady, st.spin, func(w platform.WorkerID) *gaps {
		return st.gapsOf(p.Devices[p.Workers[w].Device].Name)
	})
}

// gapsOf returns the gaps of a device.
func (st *StepTimes) gapsOf(device string) *gaps {
	if st.gaps == nil {
		st.gaps = map[string]*gaps{}
	}
	if st.gaps[device] == nil {
		st.gaps[device] = &gaps{}
	}
	return st.gaps[device]
}

// addGaps adds the gaps of a schedule to its workers' gaps, by gapsOf. The spans are sorted by start.
func addGaps(s *schedule.Schedule, spin time.Duration, of func(platform.WorkerID) *gaps) {
	free := map[platform.WorkerID]time.Duration{}
	for i := range s.Spans {
		sp := &s.Spans[i]
		if end, ok := free[sp.Worker]; ok {
			g, waited := of(sp.Worker), sp.Ready-end
			gap := sp.Start - max(sp.Ready, end)
			switch {
			case waited <= 0:
				g.dispatch = append(g.dispatch, gap)
			case spin > 0 && waited >= spin:
				g.wake = append(g.wake, gap)
			default:
				g.handoff = append(g.handoff, gap)
			}
		}
		free[sp.Worker] = sp.End
	}
}

// timesOf finds the times of a model's call.
func (st *StepTimes) timesOf(m platform.Model) *callTimes {
	i := slices.IndexFunc(st.calls, func(t *callTimes) bool { return sameCall(&t.model, &m) })
	if i < 0 {
		i, st.calls = len(st.calls), append(st.calls, &callTimes{model: m})
	}
	return st.calls[i]
}

// middle reports for every run whether its step time lies in the middle third.
func (st *StepTimes) middle() []bool {
	order := make([]int, len(st.runs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(st.runs[a], st.runs[b]) })
	in := make([]bool, len(order))
	off := len(order) / 3
	for _, i := range order[off : len(order)-off] {
		in[i] = true
	}
	return in
}

// stepNs is the mean of a call over the runs in the middle third, or over all its runs if none is
// there.
func (t *callTimes) stepNs(middle []bool) float64 {
	var inside, all []time.Duration
	for _, r := range t.runs {
		all = append(all, r.mean)
		if middle[r.run] {
			inside = append(inside, r.mean)
		}
	}
	if len(inside) == 0 {
		inside = all
	}
	return float64(max(1, meanOf(inside)))
}

// Models are the calls with their times in steps, sorted by name. A time is the mean over the
// runs whose step time is in the middle third. Nothing is cut within a run, since everything adds
// up to the step; a disturbed run is left out as a whole. A call that has no model of its own
// duration gets the median over all in place of one.
func (st *StepTimes) Models() []platform.Model {
	models := make([]platform.Model, 0, len(st.calls))
	middle := st.middle()
	for _, t := range st.calls {
		if len(t.steady) == 0 {
			continue
		}
		m, sum := t.model, summarise(t.steady)
		m.MedianNs, m.P95Ns, m.Count = float64(max(sum.median, 1)), float64(sum.p95), sum.count
		m.StepNs, m.StepDistribution = t.stepNs(middle), sum.distribution
		m.FirstNs = float64(meanOf(t.first))
		models = append(models, m)
	}
	slices.SortFunc(models, func(a, b platform.Model) int { return compareCalls(&a, &b) })
	return models
}

func meanOf(times []time.Duration) time.Duration {
	if len(times) == 0 {
		return 0
	}
	var sum time.Duration
	for _, t := range times {
		sum += t
	}
	return sum / time.Duration(len(times))
}

// minGaps is how many gaps of a kind are needed for a meaningful mean.
const minGaps = 50

// PutInto sets three numbers of a device to what the steps showed, where there were enough of
// each: the time between tasks, the spread from run to run, and the cost of being timed.
func (st *StepTimes) PutInto(d *platform.Device) {
	d.RunSpread = st.RunSpread()
	if len(st.timing) > 0 && !d.IsProcessor() {
		d.Timing = clearTiming(st.timing)
	}
	g := st.gapsOf(d.Name)
	if len(g.dispatch) < minGaps {
		return
	}
	d.Dispatch = summarise(g.dispatch).mean
	if len(g.handoff) >= minGaps {
		d.Handoff = max(1, summarise(g.handoff).mean-d.Dispatch)
	}
	if len(g.wake) >= minGaps && st.spin > 0 {
		d.WakeAfter, d.Wake = st.spin, max(1, stats.Median(g.wake)-d.Dispatch)
	}
}

// normalDeviation is the standard deviation of a normal distribution whose median
// absolute deviation is 1.
const normalDeviation = 1.4826

// RunSpread is how far the steady step time varies from run to run: a standard deviation relative
// to the median, at most 1; 0 with fewer than two runs. It comes from the median absolute
// deviation [Rousseeuw, Croux, JASA 88(424), 1993], which one disturbed run does not move.
func (st *StepTimes) RunSpread() float64 {
	if len(st.runs) < 2 {
		return 0
	}
	center := stats.Median(st.runs)
	off := make([]time.Duration, len(st.runs))
	for i, t := range st.runs {
		off[i] = max(t-center, center-t)
	}
	return min(1, normalDeviation*float64(stats.Median(off))/float64(max(center, 1)))
}
