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
	"dahl/schedule/place"
	"dahl/simulate"
)

// Piece is some steps of a graph that run without a barrier between them. Only the tasks of
// a recorded piece are timed.
type Piece struct {
	dag.Segment
	Recorded bool
}

// Totals are what a run of either world came to, over the whole program: every piece in its
// order.
type Totals struct {
	World    schedule.World
	Run      time.Duration // all pieces, one after another
	Joules   float64
	Basis    energy.Basis
	ByDevice map[string]float64 // joules, with those of the host
	ByLink   map[string]float64

	Tasks, Transfers int
	BytesMoved       int64
	Reasons          map[place.Reason]TransferTotal
	Evicted          TransferTotal // dropped for lack of room, copied home before or not
	PeakBytes        []int64       // live, by memory

	// Main is the schedule of one recorded piece of the program's first graph, that with
	// the median step time, and Report its energy: what figures and comparisons show.
	Main   *schedule.Schedule
	Report *energy.Report
	// Epoch and First are the epoch of Main in an executed run, and the training step that
	// Main begins with, both from 1.
	Epoch, First int

	RecordedSteps int        // of the first graph: those that the schedules hold
	Unrecorded    Unrecorded // what was not recorded

	recent []Accounted // the last recorded pieces of the first graph
}

// Unrecorded is what is known of the pieces that were not recorded.
type Unrecorded struct {
	Steps  int // of the first graph
	Pieces int // of all graphs

	recent []time.Duration // steady steps of the last pieces of the first graph
}

// TransferTotal is what moved for one reason.
type TransferTotal struct {
	Count int   `json:"count"`
	Bytes int64 `json:"bytes"`
}

func (t TransferTotal) plus(count int, bytes int64) TransferTotal {
	return TransferTotal{t.Count + count, t.Bytes + bytes}
}

// times is the total of so many steps, where t is that of others.
func (t TransferTotal) times(steps, of int) TransferTotal {
	return TransferTotal{t.Count * steps / of, t.Bytes * int64(steps) / int64(of)}
}

// Accounted is a schedule of a piece and its energy.
type Accounted struct {
	Schedule *schedule.Schedule
	Report   *energy.Report

	Epoch, First int // of an executed one: the epoch, and the training step it begins with, from 1
}

// maxRecent bounds the pieces among which Main is chosen. It is odd, so that one of them is
// the median.
const maxRecent = 15

// NewTotals are those of a run that has not begun.
func NewTotals(world schedule.World, p *platform.Platform) *Totals {
	return &Totals{World: world, ByDevice: map[string]float64{}, ByLink: map[string]float64{}, Reasons: map[place.Reason]TransferTotal{}, PeakBytes: make([]int64, len(p.Memories))}
}

// Predict simulates pieces of a decided program and adds them up. Equal pieces are simulated
// once. Timed says that the tasks of recorded pieces are timed, as in an execution; images is
// the number of images of one step of a graph, 0: it has none.
func Predict(ctx context.Context, d *schedule.Decision, pieces []Piece, timed bool, images func(*dag.Graph) int) (*Totals, error) {
	out := NewTotals(schedule.Simulated, d.Priced.Platform)
	done := map[Piece]Accounted{}
	for _, p := range pieces {
		g := d.Priced.Program.Graphs[p.Graph]
		a, ok := done[p]
		if !ok {
			s, err := Simulate(ctx, d, p.Graph, p.Steps, simulate.Options{Timed: timed && p.Recorded})
			if err != nil {
				return nil, err
			}
			report, err := EnergyOf(s, d.Problem(p.Graph, s.Steps, false), images(g))
			if err != nil {
				return nil, err
			}
			a = Accounted{Schedule: s, Report: report}
			done[p] = a
		}
		if p.Recorded {
			out.Add(a, g, p.Segment)
		} else {
			out.AddUnrecorded(a.Schedule, g, p.Segment)
		}
	}
	return out, nil
}

// EnergyOf is the energy of a schedule, and per image where a step has some.
func EnergyOf(s *schedule.Schedule, p *schedule.Problem, images int) (*energy.Report, error) {
	report, err := energy.FromSchedule(s, p)
	if err != nil {
		return nil, fmt.Errorf("energy of graph %q: %w", p.Graph.Name, err)
	}
	if images > 0 {
		report.CountImages(int64(images * s.Steps))
	}
	return report, nil
}

// Add accounts for one recorded segment of a graph, of whose steps the schedule holds all
// or the first, and returns its joules.
func (o *Totals) Add(a Accounted, g *dag.Graph, seg dag.Segment) (joules float64) {
	s, report := a.Schedule, a.Report
	part := &Totals{Run: wholeTime(s, seg), Tasks: g.NumTasks() * seg.Steps, PeakBytes: s.PeakBytes, Transfers: len(s.Transfers) * seg.Steps / s.Steps,
		ByDevice: map[string]float64{}, ByLink: map[string]float64{}, Reasons: map[place.Reason]TransferTotal{}}
	scale := 1.0
	if s.Makespan > 0 {
		scale = float64(part.Run) / float64(s.Makespan)
	}
	part.Joules = float64(report.TotalJoules * scale)
	part.ByDevice["host"] = float64(report.Causes.Host * scale)
	for _, d := range report.ByDevice {
		part.ByDevice[d.Name] += float64(d.Joules * scale)
	}
	for _, l := range report.ByLink {
		part.ByLink[l.Name] += float64(l.Joules * scale)
	}
	for i := range s.Transfers {
		t := &s.Transfers[i]
		part.Reasons[t.Reason] = part.Reasons[t.Reason].plus(1, t.Bytes)
	}
	for reason, sum := range part.Reasons {
		sum = sum.times(seg.Steps, s.Steps)
		part.Reasons[reason] = sum
		part.BytesMoved += sum.Bytes
	}
	for i := range s.Evictions {
		part.Evicted = part.Evicted.plus(1, s.Evictions[i].Bytes)
	}
	part.Evicted = part.Evicted.times(seg.Steps, s.Steps)
	if seg.Graph == 0 {
		part.RecordedSteps = s.Steps
		o.chooseMain(a)
	}
	o.Include(part)
	o.Basis = report.Basis
	return part.Joules
}

// AddUnrecorded accounts for a segment of which only the time of all is known.
func (o *Totals) AddUnrecorded(s *schedule.Schedule, g *dag.Graph, seg dag.Segment) {
	o.Run += wholeTime(s, seg)
	o.Tasks += g.NumTasks() * seg.Steps
	o.Unrecorded.Pieces++
	if seg.Graph != 0 {
		return
	}
	o.Unrecorded.Steps += seg.Steps
	o.Unrecorded.recent = last(o.Unrecorded.recent, StepTime(s))
}

// last appends to the most recent values and drops the oldest where there are maxRecent.
func last[T any](recent []T, v T) []T { return append(recent[max(0, len(recent)+1-maxRecent):], v) }

// wholeTime is what a segment takes, of whose steps a schedule holds all or the first.
func wholeTime(s *schedule.Schedule, seg dag.Segment) time.Duration {
	return s.Makespan + time.Duration(seg.Steps-s.Steps)*s.Period
}

// Include adds the totals of a later part of the same run. Main and Basis stay.
func (o *Totals) Include(other *Totals) {
	o.Run += other.Run
	o.Joules += other.Joules
	for device, joules := range other.ByDevice {
		o.ByDevice[device] += joules
	}
	for link, joules := range other.ByLink {
		o.ByLink[link] += joules
	}
	o.Tasks += other.Tasks
	o.Transfers += other.Transfers
	o.BytesMoved += other.BytesMoved
	for reason, total := range other.Reasons {
		o.Reasons[reason] = o.Reasons[reason].plus(total.Count, total.Bytes)
	}
	o.Evicted = o.Evicted.plus(other.Evicted.Count, other.Evicted.Bytes)
	for m, b := range other.PeakBytes {
		o.PeakBytes[m] = max(o.PeakBytes[m], b)
	}
	o.RecordedSteps += other.RecordedSteps
	o.Unrecorded.Steps += other.Unrecorded.Steps
	o.Unrecorded.Pieces += other.Unrecorded.Pieces
}

// chooseMain takes in one more recorded piece of the first graph.
func (o *Totals) chooseMain(a Accounted) {
	o.recent = last(o.recent, a)
	byStep := slices.Clone(o.recent)
	slices.SortStableFunc(byStep, func(a, b Accounted) int { return cmp.Compare(StepTime(a.Schedule), StepTime(b.Schedule)) })
	median := byStep[len(byStep)/2]
	o.Main, o.Report, o.Epoch, o.First = median.Schedule, median.Report, median.Epoch, median.First
}

// StepTime is the median over the last pieces of the first graph: of those that were not
// recorded, and so held up by nothing, where there are any.
func (o *Totals) StepTime() time.Duration {
	if n := len(o.Unrecorded.recent); n > 0 {
		sorted := slices.Sorted(slices.Values(o.Unrecorded.recent))
		return sorted[n/2]
	}
	return StepTime(o.Main)
}

// JoulesPerStep are those of a steady step of Main, by the platform's powers.
func (o *Totals) JoulesPerStep() float64 { return joulesPerStep(o.Report, o.Main) }

// joulesPerStep is the mean power times the step.
func joulesPerStep(r *energy.Report, s *schedule.Schedule) float64 {
	return r.MeanWatts * StepTime(s).Seconds()
}

// StepTime is the steady distance between the steps of a schedule, or the whole of a single
// one.
func StepTime(s *schedule.Schedule) time.Duration {
	if s.Period > 0 {
		return s.Period
	}
	return s.Makespan / time.Duration(max(1, s.Steps))
}
