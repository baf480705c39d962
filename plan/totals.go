package plan

import (
	"cmp"
	"context"
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
	// First says that the piece begins with the first step of its graph in the run. This step warms up, and [Totals].Counted leaves it out.
	First   bool
	Samples int // that a step trains on; zero means it evaluates, or no model made it
}

// counts reports whether the steps of a piece count for the run: they train, or there are no others.
func (p *Piece) counts() bool { return p.Graph == 0 || p.Samples > 0 }

// Counted is some steps and what they took.
type Counted struct {
	Steps   int           `json:"steps"`
	Samples int           `json:"images"`
	Time    time.Duration `json:"time_ns"`
	Joules  float64       `json:"joules"` // by the platform's powers
}

// Plus is both together.
func (w Counted) Plus(o Counted) Counted {
	return Counted{w.Steps + o.Steps, w.Samples + o.Samples, w.Time + o.Time, w.Joules + o.Joules}
}

// StepS is the mean time of a step in seconds; 0 of none.
func (w Counted) StepS() float64 { return w.Time.Seconds() / float64(max(1, w.Steps)) }

// PerStep is [Counted.StepS] in whole nanoseconds.
func (w Counted) PerStep() time.Duration { return w.Time / time.Duration(max(1, w.Steps)) }

// Totals are the results of a run in either world, over the whole program: every piece in its
// order.
type Totals struct {
	World    schedule.World
	Run      time.Duration // all pieces, one after another
	Joules   float64
	Basis    energy.Basis
	ByDevice map[string]float64 // joules, including the host's
	ByLink   map[string]float64

	Tasks, Transfers int
	BytesMoved       int64
	Reasons          map[place.Reason]TransferTotal
	Evicted          TransferTotal // dropped for lack of room, copied home before or not
	PeakBytes        []int64       // live, by memory

	// Counted is the basis of the time of a step, samples per second and joules per sample, wherever they are shown:
	// the steps that train, but the first of each graph. It is zero where only first steps ran.
	Counted Counted

	// Main is the schedule of one recorded piece of the program's first graph. Of the longest of the last
	// pieces it is the one with the median step time. Report is its energy. Figures and comparisons show both.
	Main   *schedule.Schedule
	Report *energy.Report
	// Epoch and First are the epoch of Main in an executed run, and the training step that
	// Main begins with, both from 1.
	Epoch, First int

	Steps      int // of Counted, with the first of each graph
	Recorded   int // of these
	Unrecorded int // pieces of all graphs

	recent []Accounted     // the last recorded pieces of the first graph
	drawn  map[int]*Totals // what the recorded pieces of each graph came to
}

// TransferTotal counts the transfers for one reason.
type TransferTotal struct {
	Count int   `json:"count"`
	Bytes int64 `json:"bytes"`
}

func (t TransferTotal) plus(count int, bytes int64) TransferTotal {
	return TransferTotal{t.Count + count, t.Bytes + bytes}
}

// times scales the total of some steps to another number of steps.
func (t TransferTotal) times(steps, of int) TransferTotal {
	return TransferTotal{t.Count * steps / of, t.Bytes * int64(steps) / int64(of)}
}

// Accounted is a schedule of a piece and its energy.
type Accounted struct {
	Schedule *schedule.Schedule
	Report   *energy.Report

	Overlaps bool // by lags of its plan

	Epoch, First int // of an executed one: the epoch, and the training step it begins with, from 1
}

// maxRecent bounds the pieces among which Main is chosen. It is odd, so that one of them is
// the median.
const maxRecent = 15

// NewTotals returns empty totals.
func NewTotals(world schedule.World, p *platform.Platform) *Totals {
	o := newPart()
	o.World, o.PeakBytes, o.drawn = world, make([]int64, len(p.Memories)), map[int]*Totals{}
	return o
}

// newPart are totals to be added to others.
func newPart() *Totals {
	return &Totals{ByDevice: map[string]float64{}, ByLink: map[string]float64{}, Reasons: map[place.Reason]TransferTotal{}}
}

// Predict simulates pieces of a decided program and adds them up. Equal pieces are simulated
// once. Timed says that the tasks of recorded pieces are timed, as in an execution.
func Predict(ctx context.Context, d *schedule.Decision, pieces []Piece, timed bool) (*Totals, error) {
	out := NewTotals(schedule.Simulated, d.Priced.Platform)
	done := map[Piece]Accounted{}
	for _, p := range pieces {
		alike := p
		alike.First = false
		a, ok := done[alike]
		if !ok {
			var err error
			if a, err = account(ctx, d, p.Graph, SimulatedSteps(d.Priced.Program.Graphs[p.Graph].NumTasks(), p.Steps), simulate.Options{Timed: timed && p.Recorded}); err != nil {
				return nil, err
			}
			done[alike] = a
		}
		out.Add(a, d.Priced.Program.Graphs[p.Graph], p)
	}
	return out, nil
}

// FirstOf marks the pieces of a program that begin with the first step of their graph. That step does not count. Where
// no graph that counts has another step than its first, all count.
func FirstOf(pieces []Piece) {
	steps, more := map[int]int{}, false
	for i := range pieces {
		p := &pieces[i]
		p.First = steps[p.Graph] == 0
		steps[p.Graph] += p.Steps
		more = more || p.counts() && steps[p.Graph] > 1
	}
	for i := range pieces {
		pieces[i].First = pieces[i].First && more
	}
}

// Add accounts for a piece of a graph, of whose steps the schedule holds all or the first. It returns
// what of it counts. Where there is no report, the piece draws what the recorded ones of its graph did, in the mean.
func (o *Totals) Add(a Accounted, g *dag.Graph, p Piece) (counted Counted) {
	part, like := newPart(), o.drawn[p.Graph]
	part.Run, part.Tasks = wholeTime(a.Schedule, p.Segment), g.NumTasks()*p.Steps
	if a.Report != nil {
		like, o.Basis = drawnBy(a), a.Report.Basis
	}
	if like != nil {
		part.addScaled(like, ratio(part.Run, like.Run))
	}
	if p.counts() {
		part.Steps, part.Counted = p.Steps, part.countedOf(&a, p)
	}
	if !p.Recorded {
		part.Unrecorded = 1
		o.Include(part)
		return part.Counted
	}
	part.Recorded = part.Steps
	part.addMoved(a.Schedule, p.Steps)
	if p.Graph == 0 {
		o.chooseMain(a)
	}
	if o.drawn[p.Graph] == nil {
		o.drawn[p.Graph] = newPart()
	}
	o.drawn[p.Graph].Include(part)
	o.Include(part)
	return part.Counted
}

// drawnBy has the time and the joules of a schedule.
func drawnBy(a Accounted) *Totals {
	o := newPart()
	o.Run, o.Joules, o.ByDevice["host"] = a.Schedule.Makespan, a.Report.TotalJoules, a.Report.Causes.Host
	for _, d := range a.Report.ByDevice {
		o.ByDevice[d.Name] += d.Joules
	}
	for _, l := range a.Report.ByLink {
		o.ByLink[l.Name] += l.Joules
	}
	return o
}

// addScaled adds joules times a factor.
func (o *Totals) addScaled(of *Totals, factor float64) {
	o.Joules += float64(of.Joules * factor)
	for device, joules := range of.ByDevice {
		o.ByDevice[device] += float64(joules * factor)
	}
	for link, joules := range of.ByLink {
		o.ByLink[link] += float64(joules * factor)
	}
}

// ratio is a time over another; 1 where that is none.
func ratio(t, of time.Duration) float64 {
	if of <= 0 {
		return 1
	}
	return float64(t) / float64(of)
}

// addMoved extrapolates the transfers of a schedule to all steps of its piece. Before the first step and after the last one transfers happen
// once, however many steps there are.
func (o *Totals) addMoved(s *schedule.Schedule, steps int) {
	o.PeakBytes = s.PeakBytes
	for i := range s.Transfers {
		t := &s.Transfers[i]
		o.Reasons[t.Reason] = o.Reasons[t.Reason].plus(1, t.Bytes)
	}
	for reason, sum := range o.Reasons {
		if reason != place.ReasonEnter && reason != place.ReasonLeave {
			sum = sum.times(steps, s.Steps)
			o.Reasons[reason] = sum
		}
		o.Transfers += sum.Count
		o.BytesMoved += sum.Bytes
	}
	for i := range s.Evictions {
		o.Evicted = o.Evicted.plus(1, s.Evictions[i].Bytes)
	}
	o.Evicted = o.Evicted.times(steps, s.Steps)
}

// countedOf returns the counted part of a piece, given the totals of the whole piece. The first step's joules follow from the mean power.
// Where steps overlap, much of the second one and of others has been done when the first ends. So each after it takes the period.
func (o *Totals) countedOf(a *Accounted, p Piece) Counted {
	w := Counted{p.Steps, p.Steps * p.Samples, o.Run, o.Joules}
	if !p.First {
		return w
	}
	if p.Steps == 1 {
		return Counted{}
	}
	rest := o.Run - a.Schedule.FirstStep
	if a.Overlaps && a.Schedule.Period > 0 { // a run that was stopped has none
		rest = time.Duration(p.Steps-1) * a.Schedule.Period
	}
	return Counted{p.Steps - 1, (p.Steps - 1) * p.Samples, rest, float64(o.Joules * ratio(rest, o.Run))}
}

// last appends to the most recent values and drops the oldest where there are maxRecent.
func last[T any](recent []T, v T) []T { return append(recent[max(0, len(recent)+1-maxRecent):], v) }

// wholeTime returns the time of a segment by a schedule of all or the first of its steps.
func wholeTime(s *schedule.Schedule, seg dag.Segment) time.Duration {
	return s.Makespan + time.Duration(seg.Steps-s.Steps)*s.Period
}

// Include adds the totals of a later part of the same run. Main and Basis stay.
func (o *Totals) Include(other *Totals) {
	o.Run += other.Run
	o.addScaled(other, 1)
	o.Tasks += other.Tasks
	o.Transfers += other.Transfers
	o.BytesMoved += other.BytesMoved
	for reason, total := range other.Reasons {
		o.Reasons[reason] = o.Reasons[reason].plus(total.Count, total.Bytes)
	}
	o.Evicted = o.Evicted.plus(other.Evicted.Count, other.Evicted.Bytes)
	for m, b := range other.PeakBytes[:min(len(o.PeakBytes), len(other.PeakBytes))] {
		o.PeakBytes[m] = max(o.PeakBytes[m], b)
	}
	o.Counted = o.Counted.Plus(other.Counted)
	o.Steps += other.Steps
	o.Recorded += other.Recorded
	o.Unrecorded += other.Unrecorded
}

// chooseMain takes in one more recorded piece of the first graph.
func (o *Totals) chooseMain(a Accounted) {
	o.recent = last(o.recent, a)
	most := slices.MaxFunc(o.recent, func(a, b Accounted) int { return cmp.Compare(a.Schedule.Steps, b.Schedule.Steps) }).Schedule.Steps
	byStep := slices.DeleteFunc(slices.Clone(o.recent), func(a Accounted) bool { return a.Schedule.Steps < most })
	slices.SortStableFunc(byStep, func(a, b Accounted) int { return cmp.Compare(StepTime(a.Schedule), StepTime(b.Schedule)) })
	median := byStep[len(byStep)/2]
	o.Main, o.Report, o.Epoch, o.First = median.Schedule, median.Report, median.Epoch, median.First
}

// StepTime is the mean time of the steps of a schedule after the first, or the time of a single one.
func StepTime(s *schedule.Schedule) time.Duration {
	if s.Steps < 2 {
		return s.Makespan
	}
	return (s.Makespan - s.FirstStep) / time.Duration(s.Steps-1)
}
