package main

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/words"
	"dahl/energy"
	"dahl/energy/meter"
	"dahl/plan"
	"dahl/schedule"
	"dahl/schedule/explain"
	"dahl/schedule/place"
	"dahl/train"
	"dahl/train/peer"
)

// energyText prints the joules of all of a training and what they rest on.
func (t *trainer) energyText() string {
	o := t.Measured
	modelled := fmt.Sprintf("%s (%s)", cli.ShortJoules(o.Joules), o.Report.Grounds())
	if o.Basis == energy.Unavailable {
		modelled = "energy unavailable: the platform names no powers"
	}
	if len(t.Readings) > 0 {
		return fmt.Sprintf("measured %s; %s", words.Readings(t.Readings), modelled)
	}
	return modelled
}

// hostBytes is what the layouts reserve in the host's memory.
func (w *workload) hostBytes() int64 {
	return w.Decision.ReservedBytes()[w.Platform.HostMemory()]
}

// memoryText says what every memory came to hold and what was reserved, and why the two differ.
func (w *workload) memoryText(o *plan.Totals) string {
	var each []string
	for m, reserved := range w.Decision.ReservedBytes() {
		text := fmt.Sprintf("%s live peak %s", w.Platform.Memories[m].Name, cli.ShortBytes(o.PeakBytes[m]))
		if reserved > 0 {
			text += ", reserved " + cli.ShortBytes(reserved)
		}
		each = append(each, text)
	}
	return strings.Join(each, "; ") + " (live: values still to be read; reserved: places for the buffers of all graphs, and workspace)"
}

// summary is the object that --json prints.
type summary struct {
	World      schedule.World `json:"world"`
	Graph      string         `json:"graph"`
	Method     string         `json:"method,omitempty"` // of the training of a network: optimiser, schedule, loss and clipping
	Policy     string         `json:"policy"`
	Chosen     *chosenDevices `json:"chosen_devices,omitempty"`
	Clocks     []string       `json:"clocks,omitempty"` // "device=clock", where it is not the device's first
	Steps      int            `json:"steps"`            // all that train; of a graph that no model made, all
	MakespanS  float64        `json:"makespan_s"`       // of the run: these steps, with evaluations
	StepS      float64        `json:"step_s"`           // the mean of what is counted
	ImagesPerS *float64       `json:"images_per_s,omitempty"`
	Counted    countedSummary `json:"counted"`
	EnergyJ    energySummary  `json:"energy_j"`
	Tasks      int            `json:"tasks"`
	Transfers  int            `json:"transfers"`
	BytesMoved int64          `json:"bytes_moved"`

	TransfersByReason map[place.Reason]plan.TransferTotal `json:"transfers_by_reason,omitempty"`
	Evictions         *plan.TransferTotal                 `json:"evictions,omitempty"` // where something had to leave

	// LivePeakBytes is the most that holds values still to be read, by memory, ReservedBytes
	// what the layouts set aside.
	LivePeakBytes map[string]int64 `json:"peak_bytes"`
	ReservedBytes map[string]int64 `json:"reserved_bytes"`
	LowerBoundS   float64          `json:"lower_bound_s"`

	*ObjectiveSummary

	Shown *shownSteps `json:"shown"` // in schedule and figures

	Busy map[string]float64 `json:"busy"` // share of the shown steps in which a device runs kernels

	EpochImages int `json:"epoch_images,omitempty"` // that a network is trained on in an epoch

	MachineClocks *machineClocks `json:"machine_clocks,omitempty"` // of a training

	Recorded *recordSummary      `json:"recorded,omitempty"` // of a training; nil: all of it
	Losses   []train.DeviceLoss  `json:"losses,omitempty"`   // what a training went on without; totals are of all of it
	Diverged *train.Divergence   `json:"diverged,omitempty"`
	Load     *loadSummary        `json:"load,omitempty"`   // of a training
	Waits    *plan.Waits         `json:"waits"`            // of the main schedule
	States   *plan.States        `json:"states,omitempty"` // of the main schedule
	Devices  *plan.SetComparison `json:"device_sets,omitempty"`
	Models   *explain.ModelError `json:"models,omitempty"`
	Tiles    *tileSearch         `json:"tiles,omitempty"`
	Cuts     []plan.CutCost      `json:"cuts,omitempty"` // of single layers
	Samples  *plan.Samples       `json:"samples,omitempty"`
	Trained  *trainedSummary     `json:"training,omitempty"`
	Peer     *peer.Result        `json:"peer,omitempty"` // of a training by another program

	// Of the last epoch, and of which images.
	TrainingLoss *number    `json:"loss,omitempty"`
	LossOf       string     `json:"loss_of,omitempty"`
	TestLoss     *number    `json:"test_loss,omitempty"`
	TestAccuracy *float64   `json:"accuracy,omitempty"`
	AccuracyOf   string     `json:"accuracy_of,omitempty"`
	Provenance   *cli.Build `json:"provenance,omitempty"`
}

// countedSummary is what step_s, images_per_s and the joules of an image are of: the steps that train, but the first of
// each graph, which warms up.
type countedSummary struct {
	Steps   int     `json:"steps"`
	Images  int     `json:"images,omitempty"`
	Seconds float64 `json:"seconds"`
	Joules  float64 `json:"modelled_joules"`
}

type energySummary struct {
	Total float64      `json:"total"` // of the run, by the platform's powers; of a training by another program by meters
	Basis energy.Basis `json:"basis"`
	// PerImage is of what is counted, by meters where they cover all devices.
	PerImage      float64            `json:"per_image,omitempty"`
	PerImageBasis energy.Basis       `json:"per_image_basis,omitempty"`
	Grounds       string             `json:"grounds"`            // of the basis: where the watts are from
	ByDevice      map[string]float64 `json:"by_device"`          // with the host
	ByLink        map[string]float64 `json:"by_link,omitempty"`  // adds up to the total with ByDevice
	Readings      []meter.Reading    `json:"readings,omitempty"` // of meters, over the run
	Meters        []meter.MeterState `json:"meters,omitempty"`   // what became of each of their counters
	Metered       []plan.MeteredStep `json:"metered,omitempty"`  // a counted step by these meters, beside its prediction
}

// trainedSummary is what only an executed run knows.
type trainedSummary struct {
	Epochs    int    `json:"epochs"`
	Images    int    `json:"images"`
	FirstLoss number `json:"first_loss"`

	PredictedStepS float64 `json:"predicted_step_s,omitempty"`
	PeakBytes      int64   `json:"peak_resident_bytes,omitempty"` // of the process
	WeightsSHA256  string  `json:"weights_sha256"`

	// ResumedAfterStep is the step after which the training went on last, where it was
	// interrupted: times and joules are of what came then.
	ResumedAfterStep int            `json:"resumed_after_step,omitempty"`
	Checkpoints      *savingSummary `json:"checkpoints,omitempty"`
}

// savingSummary is what checkpoints cost: the time in which workers rested, or ended a step
// early for them.
type savingSummary struct {
	Count  int     `json:"count"`
	DrainS float64 `json:"drain_s"`
	WriteS float64 `json:"write_s"`
}

// summarize fills what both worlds know, and what meters counted over the run, evaluations
// and the time between segments included. The makespan is that of the whole program.
func (w *workload) summarize(o *plan.Totals, readings ...meter.Reading) *summary {
	problem := w.mainProblem(o.Main.Steps)
	s := &summary{
		World: o.World, Graph: problem.Graph.Name, Policy: o.Main.Policy, Chosen: w.chosen, Clocks: w.Platform.ClocksInForce(), MachineClocks: w.clocks,
		Steps: o.Steps, MakespanS: o.Run.Seconds(), Counted: countedSummary{o.Counted.Steps, o.Counted.Images, o.Counted.Time.Seconds(), o.Counted.Joules},
		EnergyJ: energySummary{Total: o.Joules, Basis: o.Basis, Grounds: o.Report.Grounds(), ByDevice: o.ByDevice, ByLink: o.ByLink, Readings: readings},
		Tasks:   o.Tasks, Transfers: o.Transfers, BytesMoved: o.BytesMoved, TransfersByReason: o.Reasons, Recorded: recording(o),
		LivePeakBytes: map[string]int64{}, ReservedBytes: map[string]int64{}, Shown: w.shown(o), Busy: plan.BusyShares(w.Platform, o.Main), EpochImages: w.samples.Train, Tiles: w.tiles, Waits: plan.WaitsOf(problem, o.Main),
		States: plan.StatesOf(problem, o.Main, o.Report),
	}
	if w.Model != nil {
		s.Method = w.Model.Defaults.String()
	}
	f := w.figures(o, readings...)
	if s.StepS = f.StepS; f.ImagesPerS > 0 {
		s.ImagesPerS, s.EnergyJ.PerImage, s.EnergyJ.PerImageBasis = &f.ImagesPerS, f.JoulesPerImage, f.Basis
	}
	if o.Evicted.Count > 0 {
		s.Evictions = &o.Evicted
	}
	for m, b := range w.Decision.ReservedBytes() {
		name := w.Platform.Memories[m].Name
		s.LivePeakBytes[name], s.ReservedBytes[name] = o.PeakBytes[m], b
	}
	for _, seg := range w.Program.Order {
		s.LowerBoundS += w.Decision.Priced.LowerBound(seg.Graph, seg.Steps).Seconds()
	}
	return s
}

// joulesPerStep is of what is counted, in the mean; NaN where it is not known.
func (s *summary) joulesPerStep() float64 {
	switch c := &s.Counted; {
	case c.Steps == 0 || s.EnergyJ.Basis == energy.Unavailable && s.EnergyJ.PerImage == 0:
		return math.NaN()
	case s.EnergyJ.PerImage > 0:
		return s.EnergyJ.PerImage * float64(c.Images) / float64(c.Steps)
	default:
		return c.Joules / float64(c.Steps)
	}
}

// energyBy says what the joules of an image or a step rest on.
func (s *summary) energyBy() string {
	if s.EnergyJ.PerImageBasis == energy.Measured {
		return "measured by meters"
	}
	return s.EnergyJ.Grounds
}

// shownSteps says which steps of a run its schedule and figures show: one segment of the
// training steps of a whole batch, or the first steps of a simulated one. What is measured of them is not what is
// counted of the run.
type shownSteps struct {
	Steps int `json:"steps"`
	Of    int `json:"of"` // training steps in the run

	Epoch  int `json:"epoch,omitempty"` // 0: of a simulated run
	Epochs int `json:"of_epochs,omitempty"`
	First  int `json:"first_step,omitempty"` // from 1, as in steps.csv

	FirstStepS  float64 `json:"first_step_s"`            // of these steps, until the end of the first
	SteadyStepS float64 `json:"steady_step_s,omitempty"` // from the end of a step to that of the next, in their second half; 0: there is one
	LowerBoundS float64 `json:"lower_bound_s"`           // of these steps, by the estimated times
}

// shown says which steps the main schedule of some totals is of.
func (w *workload) shown(o *plan.Totals) *shownSteps {
	s := &shownSteps{Steps: o.Main.Steps, Of: o.Steps, Epoch: o.Epoch, First: o.First, FirstStepS: o.Main.FirstStep.Seconds(), SteadyStepS: o.Main.Period.Seconds(),
		LowerBoundS: w.Decision.Priced.LowerBound(0, o.Main.Steps).Seconds()}
	if s.Epoch > 0 {
		s.Epochs = w.opts.Epochs
	}
	return s
}

// firstCount says that the first step of each graph counts, as where there was no other.
func (s *summary) firstCount() bool { return s.Steps > 0 && s.Counted.Steps == s.Steps }

// String says it in words; it is empty where all steps are shown and none is numbered.
func (s *shownSteps) String() string {
	switch {
	case s.Epoch > 0 && s.Steps == 1:
		return fmt.Sprintf("step %d of %d, in epoch %d of %d", s.First, s.Of, s.Epoch, s.Epochs)
	case s.Epoch > 0:
		return fmt.Sprintf("steps %d to %d of %d, in epoch %d of %d", s.First, s.First+s.Steps-1, s.Of, s.Epoch, s.Epochs)
	case s.Steps < s.Of:
		return fmt.Sprintf("the first %d of %d steps", s.Steps, s.Of)
	}
	return ""
}

// number is one that may come out as NaN or infinite, which JSON has no word for: null.
type number float64

func (n number) MarshalJSON() ([]byte, error) {
	if !isFinite(float64(n)) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

func (n *number) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		*n = number(math.NaN())
		return nil
	}
	return json.Unmarshal(data, (*float64)(n))
}

// same reports whether two numbers are equal, or neither is finite.
func (n number) same(other number) bool {
	return n == other || !isFinite(float64(n)) && !isFinite(float64(other))
}

func isFinite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// recordSummary says what of a training was recorded, where not all of it was: the
// transfers, evictions and peaks of its summary are those of the recorded steps, and so is everything in its
// schedule. The modelled joules of the other steps are those of the mean power of the recorded ones of their graph.
type recordSummary struct {
	Steps int `json:"steps"` // of those that train
	Of    int `json:"of"`
}

// recording is nil where all steps were recorded.
func recording(o *plan.Totals) *recordSummary {
	if o.Unrecorded == 0 {
		return nil
	}
	return &recordSummary{o.Recorded, o.Steps}
}

func (s *recordSummary) String() string {
	if s.Steps == s.Of {
		return "all training steps, and of other graphs the first; copies are of those, and the joules of the others of their mean power"
	}
	return fmt.Sprintf("%d of %d training steps; schedule and copies are of those, and the joules of the others of their mean power", s.Steps, s.Of)
}
