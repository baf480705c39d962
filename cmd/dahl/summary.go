package main

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"dahl/cmd/cli"
	"dahl/energy"
	"dahl/nn"
	"dahl/plan"
	"dahl/schedule"
	"dahl/schedule/explain"
	"dahl/schedule/place"
	"dahl/train"
	"dahl/train/peer"
)

// energyText prints the joules of a training and what they rest on.
func (t *trainer) energyText() string {
	o := t.Measured
	if len(t.Readings) > 0 {
		return fmt.Sprintf("measured %s; %s %s", readingsText(t.Readings), o.Report.Grounds(), joulesText(o))
	}
	if o.Basis == energy.Unavailable {
		return "energy unavailable: the platform names no powers"
	}
	return fmt.Sprintf("%s (%s)", joulesText(o), o.Report.Grounds())
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
	Steps      int            `json:"steps"`
	MakespanS  float64        `json:"makespan_s"`
	FirstStepS float64        `json:"first_step_s"`
	PeriodS    float64        `json:"period_s"`
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

	Busy map[string]float64 `json:"busy"` // share of a steady step of the main schedule, by device

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
	Tiles    *plan.TileSearch    `json:"tiles,omitempty"`
	Cuts     []plan.CutCost      `json:"cuts,omitempty"` // of single layers
	Samples  *plan.Samples       `json:"samples,omitempty"`
	Trained  *trainedSummary     `json:"training,omitempty"`
	Peer     *peer.Result        `json:"peer,omitempty"` // of a training by another program

	ImagesPerS *float64   `json:"images_per_s,omitempty"`
	Loss       *number    `json:"loss,omitempty"`
	Accuracy   *float64   `json:"accuracy,omitempty"`
	Provenance *cli.Build `json:"provenance,omitempty"`
}

type energySummary struct {
	Total    float64            `json:"total"`
	Basis    energy.Basis       `json:"basis"`
	PerImage float64            `json:"per_image,omitempty"` // of a steady training step
	Grounds  string             `json:"grounds"`             // of the basis: where the watts are from
	ByDevice map[string]float64 `json:"by_device"`           // with the host
	ByLink   map[string]float64 `json:"by_link,omitempty"`   // adds up to the total with ByDevice
	Readings []energy.Reading   `json:"readings,omitempty"`  // of meters, over the run
	Metered  []plan.MeteredStep `json:"metered,omitempty"`   // a step by these meters, beside its prediction
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
func (w *workload) summarize(o *plan.Totals, readings ...energy.Reading) *summary {
	problem := w.mainProblem(o.Main.Steps)
	s := &summary{
		World: o.World, Graph: problem.Graph.Name, Policy: o.Main.Policy, Chosen: w.chosen, Clocks: w.Platform.ClocksInForce(), MachineClocks: w.clocks,
		MakespanS: o.Run.Seconds(), FirstStepS: o.Main.FirstStep.Seconds(), PeriodS: o.StepTime().Seconds(),
		EnergyJ: energySummary{Total: o.Joules, Basis: o.Basis, Grounds: o.Report.Grounds(), ByDevice: o.ByDevice, ByLink: o.ByLink, Readings: readings},
		Tasks:   o.Tasks, Transfers: o.Transfers, BytesMoved: o.BytesMoved, TransfersByReason: o.Reasons, Recorded: recording(o),
		LivePeakBytes: map[string]int64{}, ReservedBytes: map[string]int64{}, Shown: w.shown(o), Busy: plan.BusyShares(w.Platform, o.Main), EpochImages: w.samples.Train, Tiles: w.tiles, Waits: plan.WaitsOf(problem, o.Main),
		States: plan.StatesOf(problem, o.Main, o.Report),
	}
	if w.Model != nil {
		s.Method = w.Model.Defaults.String()
	}
	if f := w.figures(o, readings...); f.ImagesPerS > 0 {
		s.ImagesPerS, s.EnergyJ.PerImage = &f.ImagesPerS, f.JoulesPerImage
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
		if seg.Graph == 0 {
			s.Steps += seg.Steps
		}
	}
	return s
}

// shownSteps says which steps of a run its schedule and figures show: one segment of the
// training steps of a whole batch, or the first steps of a simulated one.
type shownSteps struct {
	Steps int `json:"steps"`
	Of    int `json:"of"` // training steps in the run

	Epoch  int `json:"epoch,omitempty"` // 0: of a simulated run
	Epochs int `json:"of_epochs,omitempty"`
	First  int `json:"first_step,omitempty"` // from 1, as in steps.csv

	LowerBoundS float64 `json:"lower_bound_s"` // of these steps, by the estimated times
}

// shown says which steps the main schedule of some totals is of.
func (w *workload) shown(o *plan.Totals) *shownSteps {
	s := &shownSteps{Steps: o.Main.Steps, Epoch: o.Epoch, First: o.First, LowerBoundS: w.Decision.Priced.LowerBound(0, o.Main.Steps).Seconds()}
	for _, seg := range w.Program.Order {
		if seg.Graph == 0 || nn.IsTraining(w.Program.Graphs[seg.Graph]) {
			s.Of += seg.Steps
		}
	}
	if s.Epoch > 0 {
		s.Epochs = w.opts.Epochs
	}
	return s
}

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
// transfers, evictions, peaks and modelled joules of its summary are those of the recorded
// steps, and so is everything in its schedule.
type recordSummary struct {
	Steps         int     `json:"steps"` // of the first graph
	Of            int     `json:"of"`
	StepS         float64 `json:"step_s"` // of a recorded one
	JoulesPerStep float64 `json:"joules_per_step"`
	// PredictedS is the prediction of a step that is not recorded, where it is another one.
	PredictedS float64 `json:"predicted_step_s,omitempty"`
}

// recording is nil where all steps were recorded.
func recording(o *plan.Totals) *recordSummary {
	if o.Unrecorded.Pieces == 0 {
		return nil
	}
	return &recordSummary{Steps: o.RecordedSteps, Of: o.RecordedSteps + o.Unrecorded.Steps,
		StepS: plan.StepTime(o.Main).Seconds(), JoulesPerStep: o.JoulesPerStep()}
}

// joulesText prints modelled joules, and of what.
func joulesText(o *plan.Totals) string {
	if o.Unrecorded.Pieces == 0 {
		return cli.ThreeDigits(o.Joules) + " J"
	}
	return cli.ThreeDigits(o.JoulesPerStep()) + " J per recorded step"
}

func (s *recordSummary) String() string {
	if s.Steps == s.Of {
		return "all training steps, and of other graphs the first; copies and modelled joules are of those"
	}
	return fmt.Sprintf("%d of %d training steps, of %s each; schedule, copies and modelled joules are of those, step and images/s of the others",
		s.Steps, s.Of, cli.ShortTime(cli.Seconds(s.StepS)))
}
