package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"dahl/dag"
	"dahl/energy"
	"dahl/plan"
	"dahl/platform"
	"dahl/schedule"
	"dahl/simulate"
)

// outcome is what a run of either world came to. Its totals are over the whole
// program: every segment in its order.
type outcome struct {
	World    schedule.World
	Run      time.Duration // all segments, one after another
	Joules   float64
	Basis    energy.Basis
	ByDevice map[string]float64 // joules, with those of the host
	ByLink   map[string]float64

	Tasks, Transfers int
	BytesMoved       int64
	Reasons          map[schedule.Reason]transferTotal
	Evicted          transferTotal // dropped for lack of room, copied home before or not
	PeakBytes        []int64       // live, by memory

	// Main is the schedule of one segment of the program's first graph, that with
	// the median step time, and Report its energy: what figures and comparisons show.
	Main   *schedule.Schedule
	Report *energy.Report
	// The epoch of Main in an executed run, and the training step that it begins with.
	epoch, first int

	// Readings are what meters counted over the run, evaluations and the time between
	// segments included.
	Readings []energy.Reading
	GPUs     []deviceState // as they were when the run began

	recent []accounted // the last segments of the first graph

	recordedSteps int // of the first graph: those that the schedules hold
	unrecorded    unrecorded
}

// maxRecent bounds the segments among which Main is chosen. It is odd, so that
// one of them is the median.
const maxRecent = 15

func newOutcome(world schedule.World, p *platform.Platform) *outcome {
	return &outcome{World: world, ByDevice: map[string]float64{}, ByLink: map[string]float64{}, Reasons: map[schedule.Reason]transferTotal{}, PeakBytes: make([]int64, len(p.Memories))}
}

// predict simulates every graph of the program for as many steps as its segments
// have and adds the segments up. Segments of one graph repeat exactly.
func (w *workload) predict(ctx context.Context) (*outcome, error) {
	out := newOutcome(schedule.Simulated, w.platform)
	done := map[piece]accounted{}
	for _, p := range w.predictedPieces() {
		a, ok := done[p]
		if !ok {
			s, err := plan.Simulate(ctx, w.decision, p.Graph, p.Steps, simulate.Options{Timed: w.executed && p.record})
			if err != nil {
				return nil, err
			}
			if a, err = w.account(p.Graph, s); err != nil {
				return nil, err
			}
			done[p] = a
		}
		if g := w.program.Graphs[p.Graph]; p.record {
			out.add(a, g, p.Segment)
		} else {
			out.addUnrecorded(a.schedule, g, p.Segment)
		}
	}
	return out, nil
}

// accounted is a schedule and its energy.
type accounted struct {
	schedule *schedule.Schedule
	report   *energy.Report

	epoch, first int // of an executed one: the epoch, and the training step it begins with, from 1
}

func (w *workload) account(graph int, s *schedule.Schedule) (accounted, error) {
	report, err := energyOf(s, w.decision.Problem(graph, s.Steps, false))
	return accounted{schedule: s, report: report}, err
}

// energyOf is the energy of a schedule, and per image where a model made the graph.
func energyOf(s *schedule.Schedule, p *schedule.Problem) (*energy.Report, error) {
	report, err := energy.FromSchedule(s, p)
	if err != nil {
		return nil, fmt.Errorf("energy of graph %q: %w", p.Graph.Name, err)
	}
	if batch := batchOf(p.Graph); batch > 0 {
		report.CountImages(int64(batch * s.Steps))
	}
	return report, nil
}

// add accounts for one segment of a graph, of whose steps the schedule holds all
// or the first, and returns its joules.
func (o *outcome) add(a accounted, g *dag.Graph, seg dag.Segment) (joules float64) {
	s, report := a.schedule, a.report
	run := wholeTime(s, seg)
	scale := 1.0
	if s.Makespan > 0 {
		scale = float64(run) / float64(s.Makespan)
	}
	o.Run += run
	joules = float64(report.TotalJoules * scale)
	o.Joules += joules
	o.Basis = report.Basis
	o.ByDevice["host"] += float64(report.Causes.Host * scale)
	for _, d := range report.ByDevice {
		o.ByDevice[d.Name] += float64(d.Joules * scale)
	}
	for _, l := range report.ByLink {
		o.ByLink[l.Name] += float64(l.Joules * scale)
	}
	o.Tasks += g.NumTasks() * seg.Steps
	o.Transfers += len(s.Transfers) * seg.Steps / s.Steps
	for reason, total := range transferTotals(s) {
		sum := o.Reasons[reason]
		sum.Count += total.Count * seg.Steps / s.Steps
		sum.Bytes += total.Bytes * int64(seg.Steps) / int64(s.Steps)
		o.Reasons[reason] = sum
		o.BytesMoved += total.Bytes * int64(seg.Steps) / int64(s.Steps)
	}
	var evicted int64
	for i := range s.Evictions {
		evicted += s.Evictions[i].Bytes
	}
	o.Evicted.Count += len(s.Evictions) * seg.Steps / s.Steps
	o.Evicted.Bytes += evicted * int64(seg.Steps) / int64(s.Steps)
	for m, b := range s.PeakBytes {
		o.PeakBytes[m] = max(o.PeakBytes[m], b)
	}
	if seg.Graph == 0 {
		o.recordedSteps += s.Steps
		o.chooseMain(a)
	}
	return joules
}

// wholeTime is what a segment takes, of whose steps a schedule holds all or the first.
func wholeTime(s *schedule.Schedule, seg dag.Segment) time.Duration {
	return s.Makespan + time.Duration(seg.Steps-s.Steps)*s.Period
}

// include adds the totals of a later part of the same run. Main stays.
func (o *outcome) include(other *outcome) {
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
		sum := o.Reasons[reason]
		o.Reasons[reason] = transferTotal{sum.Count + total.Count, sum.Bytes + total.Bytes}
	}
	o.Evicted.Count += other.Evicted.Count
	o.Evicted.Bytes += other.Evicted.Bytes
	for m, b := range other.PeakBytes {
		o.PeakBytes[m] = max(o.PeakBytes[m], b)
	}
	o.recordedSteps += other.recordedSteps
	o.unrecorded.steps += other.unrecorded.steps
	o.unrecorded.pieces += other.unrecorded.pieces
}

// energyText prints the joules and what they rest on.
func (o *outcome) energyText() string {
	if len(o.Readings) > 0 {
		return fmt.Sprintf("measured %s; %s %s", readingsText(o.Readings), o.Report.Grounds(), o.joulesText())
	}
	if o.Basis == energy.Unavailable {
		return "energy unavailable: the platform names no powers"
	}
	return fmt.Sprintf("%s (%s)", o.joulesText(), o.Report.Grounds())
}

// chooseMain takes in one more segment of the first graph.
func (o *outcome) chooseMain(a accounted) {
	if len(o.recent) == maxRecent {
		o.recent = o.recent[1:]
	}
	o.recent = append(o.recent, a)
	byStep := slices.Clone(o.recent)
	slices.SortStableFunc(byStep, func(a, b accounted) int { return cmp.Compare(stepTime(a.schedule), stepTime(b.schedule)) })
	median := byStep[len(byStep)/2]
	o.Main, o.Report, o.epoch, o.first = median.schedule, median.report, median.epoch, median.first
}

// mainPlan is the plan of the main graph, or what its policy decided while it ran.
func (w *workload) mainPlan(o *outcome) *schedule.Plan { return w.decision.PlanOf(0, o.Main) }

// hostBytes is what the layouts reserve in the host's memory.
func (w *workload) hostBytes() int64 {
	return w.decision.ReservedBytes()[w.platform.HostMemory()]
}

// memoryText says what every memory came to hold and what was reserved, and why the two differ.
func (w *workload) memoryText(o *outcome) string {
	var each []string
	for m, reserved := range w.decision.ReservedBytes() {
		text := fmt.Sprintf("%s live peak %s", w.platform.Memories[m].Name, shortBytes(o.PeakBytes[m]))
		if reserved > 0 {
			text += ", reserved " + shortBytes(reserved)
		}
		each = append(each, text)
	}
	return strings.Join(each, "; ") + " (live: values still to be read; reserved: places for the buffers of all graphs, and workspace)"
}

// stepTime is the steady distance between steps, or the whole of a single one.
func stepTime(s *schedule.Schedule) time.Duration {
	if s.Period > 0 {
		return s.Period
	}
	return s.Makespan / time.Duration(max(1, s.Steps))
}

// summary is the object that --json prints.
type summary struct {
	World      schedule.World `json:"world"`
	Graph      string         `json:"graph"`
	Policy     string         `json:"policy"`
	Steps      int            `json:"steps"`
	MakespanS  float64        `json:"makespan_s"`
	FirstStepS float64        `json:"first_step_s"`
	PeriodS    float64        `json:"period_s"`
	EnergyJ    energySummary  `json:"energy_j"`
	Tasks      int            `json:"tasks"`
	Transfers  int            `json:"transfers"`
	BytesMoved int64          `json:"bytes_moved"`

	TransfersByReason map[schedule.Reason]transferTotal `json:"transfers_by_reason,omitempty"`
	Evictions         *transferTotal                    `json:"evictions,omitempty"` // where something had to leave

	// LivePeakBytes is the most that holds values still to be read, by memory, ReservedBytes
	// what the layouts set aside.
	LivePeakBytes map[string]int64 `json:"peak_bytes"`
	ReservedBytes map[string]int64 `json:"reserved_bytes"`
	LowerBoundS   float64          `json:"lower_bound_s"`

	Shown *shownSteps `json:"shown"` // in schedule and figures

	Recorded *recordSummary    `json:"recorded,omitempty"` // of a training; nil: all of it
	Losses   []deviceLoss      `json:"losses,omitempty"`   // what a training went on without; totals are of all of it
	Diverged *divergence       `json:"diverged,omitempty"`
	Load     *loadSummary      `json:"load,omitempty"` // of a training
	Waits    *waitSummary      `json:"waits"`          // of the main schedule
	Devices  *deviceComparison `json:"device_sets,omitempty"`
	Models   *modelSummary     `json:"models,omitempty"`
	Tiles    *tileSweep        `json:"tiles,omitempty"`
	Samples  *samplesSummary   `json:"samples,omitempty"`
	Trained  *trainedSummary   `json:"training,omitempty"`

	ImagesPerS *float64 `json:"images_per_s,omitempty"`
	Loss       *number  `json:"loss,omitempty"`
	Accuracy   *float64 `json:"accuracy,omitempty"`
	Provenance *build   `json:"provenance,omitempty"`
}

// transferTotal is what moved for one reason.
type transferTotal struct {
	Count int   `json:"count"`
	Bytes int64 `json:"bytes"`
}

// transferTotals sums the transfers of a schedule by reason.
func transferTotals(s *schedule.Schedule) map[schedule.Reason]transferTotal {
	totals := map[schedule.Reason]transferTotal{}
	for i := range s.Transfers {
		t := totals[s.Transfers[i].Reason]
		t.Count++
		t.Bytes += s.Transfers[i].Bytes
		totals[s.Transfers[i].Reason] = t
	}
	return totals
}

type energySummary struct {
	Total    float64            `json:"total"`
	Basis    energy.Basis       `json:"basis"`
	PerImage float64            `json:"per_image,omitempty"` // of a steady training step
	Grounds  string             `json:"grounds"`             // of the basis: where the watts are from
	ByDevice map[string]float64 `json:"by_device"`           // with the host
	ByLink   map[string]float64 `json:"by_link,omitempty"`   // adds up to the total with ByDevice
	Readings []energy.Reading   `json:"readings,omitempty"`  // of meters, over the run
	Metered  []meteredStep      `json:"metered,omitempty"`   // a step by these meters, beside its prediction
}

// trainedSummary is what only an executed run knows.
type trainedSummary struct {
	Epochs        int    `json:"epochs"`
	Images        int    `json:"images"`
	FirstLoss     number `json:"first_loss"`
	WeightsSHA256 string `json:"weights_sha256"`
}

// summarize fills what both worlds know. The makespan is that of the whole program.
func (w *workload) summarize(o *outcome) *summary {
	problem := w.mainProblem(o.Main.Steps)
	s := &summary{
		World: o.World, Graph: problem.Graph.Name, Policy: o.Main.Policy, Steps: w.totalSteps(),
		MakespanS: o.Run.Seconds(), FirstStepS: o.Main.FirstStep.Seconds(), PeriodS: o.stepTime().Seconds(),
		EnergyJ: energySummary{Total: o.Joules, Basis: o.Basis, Grounds: o.Report.Grounds(), ByDevice: o.ByDevice, ByLink: o.ByLink, Readings: o.Readings},
		Tasks:   o.Tasks, Transfers: o.Transfers, BytesMoved: o.BytesMoved, TransfersByReason: o.Reasons, Recorded: o.recording(),
		LivePeakBytes: map[string]int64{}, ReservedBytes: map[string]int64{}, Shown: w.shown(o), Tiles: w.tiles, Waits: newWaitSummary(problem, o.Main),
	}
	if f := w.figures(o); f.ImagesPerS > 0 {
		s.ImagesPerS, s.EnergyJ.PerImage = &f.ImagesPerS, f.JoulesPerImage
	}
	if o.Evicted.Count > 0 {
		s.Evictions = &o.Evicted
	}
	for m, b := range w.decision.ReservedBytes() {
		name := w.platform.Memories[m].Name
		s.LivePeakBytes[name], s.ReservedBytes[name] = o.PeakBytes[m], b
	}
	for _, seg := range w.program.Order {
		s.LowerBoundS += schedule.LowerBound(w.decision.Priced.Problem(seg.Graph, seg.Steps)).Seconds()
	}
	return s
}

// totalSteps is the number of steps of the program's main graph.
func (w *workload) totalSteps() int {
	n := 0
	for _, seg := range w.program.Order {
		if seg.Graph == 0 {
			n += seg.Steps
		}
	}
	return n
}
