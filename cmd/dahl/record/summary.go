package record

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/flags"
	"dahl/energy"
	"dahl/energy/meter"
	"dahl/execute/host"
	"dahl/nn"
	"dahl/plan"
	"dahl/plan/best"
	"dahl/plan/strategy"
	"dahl/plan/tiling"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/explain"
	"dahl/schedule/place"
	"dahl/train"
	"dahl/train/metrics"
	"dahl/train/peer"
)

// Summary is the object that --json prints.
type Summary struct {
	World       schedule.World `json:"world"`
	Network     string         `json:"network,omitempty"` // that was lowered to the graph
	Graph       string         `json:"graph"`
	Method      string         `json:"method,omitempty"` // of the training of a network: optimiser, schedule, loss and clipping
	Policy      string         `json:"policy"`
	Chosen      *ChosenDevices `json:"chosen_devices,omitempty"`
	Clocks      []string       `json:"clocks,omitempty"` // "device=clock", where it is not the device's first
	Steps       int            `json:"steps"`            // all that train; of a graph that no model made, all
	MakespanS   float64        `json:"makespan_s"`       // of the run: these steps, with evaluations
	StepS       float64        `json:"step_s"`           // the mean of what is counted
	SamplesPerS *float64       `json:"images_per_s,omitempty"`
	Counted     CountedSummary `json:"counted"`
	EnergyJ     EnergySummary  `json:"energy_j"`
	Tasks       int            `json:"tasks"`
	Transfers   int            `json:"transfers"`
	BytesMoved  int64          `json:"bytes_moved"`

	TransfersByReason map[place.Reason]plan.TransferTotal `json:"transfers_by_reason,omitempty"`
	Evictions         *plan.TransferTotal                 `json:"evictions,omitempty"` // where something had to leave

	// LivePeakBytes is the peak of bytes with values still to be read, by memory. ReservedBytes is
	// the size of the layouts.
	LivePeakBytes map[string]int64 `json:"peak_bytes"`
	ReservedBytes map[string]int64 `json:"reserved_bytes"`
	LowerBoundS   float64          `json:"lower_bound_s"`

	*ObjectiveSummary

	Strategy *StrategySummary `json:"strategy,omitempty"` // of a plan by a published strategy
	Pipeline *plan.Pipelined  `json:"pipeline,omitempty"` // of a plan with lags, in the main schedule

	Shown *ShownSteps `json:"shown"` // in schedule and figures

	Work *StepWork `json:"step_work,omitempty"` // of the main schedule

	Busy  map[string]float64 `json:"busy"`            // share of the shown steps in which a device runs kernels
	Nodes *plan.Nodes        `json:"nodes,omitempty"` // of a cluster, in the shown steps

	EpochSamples int `json:"epoch_images,omitempty"` // that a network is trained on in an epoch

	MachineClocks *MachineClocks `json:"machine_clocks,omitempty"` // of a training

	Recorded *RecordSummary      `json:"recorded,omitempty"` // of a training; nil means all of it
	Losses   []train.DeviceLoss  `json:"losses,omitempty"`   // what a training went on without; totals include all legs
	Diverged *train.Divergence   `json:"diverged,omitempty"`
	Load     *LoadSummary        `json:"load,omitempty"`   // of a training
	Waits    *plan.Waits         `json:"waits"`            // of the main schedule
	States   *plan.States        `json:"states,omitempty"` // of the main schedule
	Devices  *plan.SetComparison `json:"device_sets,omitempty"`
	Models   *explain.ModelError `json:"models,omitempty"`
	Cuts     []plan.CutCost      `json:"cuts,omitempty"` // of single layers
	Samples  *plan.Samples       `json:"samples,omitempty"`
	Trained  *TrainedSummary     `json:"training,omitempty"`
	Ranks    []plan.RankMeasured `json:"ranks,omitempty"` // of a training over several ranks
	Peer     *peer.Result        `json:"peer,omitempty"`  // of a training by another program

	// Of the last epoch, and of which samples.
	TrainingLoss *Number    `json:"loss,omitempty"`
	LossOf       string     `json:"loss_of,omitempty"`
	TestLoss     *Number    `json:"test_loss,omitempty"`
	TestAccuracy *float64   `json:"accuracy,omitempty"`
	AccuracyOf   string     `json:"accuracy_of,omitempty"`
	Perplexity   *Number    `json:"perplexity,omitempty"`
	Provenance   *cli.Build `json:"provenance,omitempty"`
}

// StrategySummary is a plan in the cost model of a paper.
type StrategySummary struct {
	ModelS      float64          `json:"model_s"` // of a mini-batch, by a closed formula
	Says        string           `json:"model"`
	Paper       string           `json:"paper,omitempty"`
	Minibatches int              `json:"minibatches"` // of a step
	Stages      []strategy.Stage `json:"stages,omitempty"`
}

// CountedSummary are the steps over which step_s, images_per_s and the joules of an sample are means: all training steps
// but the first of each graph, which warms up.
type CountedSummary struct {
	Steps   int     `json:"steps"`
	Samples int     `json:"images,omitempty"`
	Seconds float64 `json:"seconds"`
	Joules  float64 `json:"modelled_joules"`
}

// EnergySummary is the energy of a run in joules: in all, for a sample, and by devices and links.
type EnergySummary struct {
	Total float64      `json:"total"` // of the run, by the platform's powers; of a training by another program by meters
	Basis energy.Basis `json:"basis"`
	// PerSample is the mean over the counted steps, by meters where they cover all devices.
	PerSample      float64            `json:"per_image,omitempty"`
	PerSampleBasis energy.Basis       `json:"per_image_basis,omitempty"`
	Grounds        string             `json:"grounds"`            // of the basis: where the watts are from
	ByDevice       map[string]float64 `json:"by_device"`          // with the host
	ByLink         map[string]float64 `json:"by_link,omitempty"`  // adds up to the total with ByDevice
	Readings       []meter.Reading    `json:"readings,omitempty"` // of meters, over the run
	Meters         []meter.MeterState `json:"meters,omitempty"`   // what became of each of their counters
	Metered        []plan.MeteredStep `json:"metered,omitempty"`  // a counted step by these meters, and its prediction
}

// TrainedSummary has the numbers that only an executed run has.
type TrainedSummary struct {
	Epochs    int    `json:"epochs"`
	Samples   int    `json:"images"`
	FirstLoss Number `json:"first_loss"`

	PredictedStepS  float64 `json:"predicted_step_s,omitempty"`
	PredictedS      float64 `json:"predicted_s,omitempty"`         // of the makespan
	PredictedJoules float64 `json:"predicted_joules,omitempty"`    // of the total
	PeakBytes       int64   `json:"peak_resident_bytes,omitempty"` // of the process
	WeightsSHA256   string  `json:"weights_sha256"`

	// ResumedAfterStep is the step after which the training went on last, where it was
	// interrupted: times and joules are those since then.
	ResumedAfterStep int            `json:"resumed_after_step,omitempty"`
	Checkpoints      *SavingSummary `json:"checkpoints,omitempty"`
}

// SavingSummary is the cost of checkpoints: the time in which workers rested, or ended a step early
// for them.
type SavingSummary struct {
	Count  int     `json:"count"`
	DrainS float64 `json:"drain_s"`
	WriteS float64 `json:"write_s"`
}

// JoulesPerStep is the mean over the counted steps. NaN means unknown.
func (s *Summary) JoulesPerStep() float64 {
	switch c := &s.Counted; {
	case c.Steps == 0 || s.EnergyJ.Basis == energy.Unavailable && s.EnergyJ.PerSample == 0:
		return math.NaN()
	case s.EnergyJ.PerSample > 0:
		return s.EnergyJ.PerSample * float64(c.Samples) / float64(c.Steps)
	default:
		return c.Joules / float64(c.Steps)
	}
}

// EnergyBy says what the joules of a sample or a step rest on.
func (s *Summary) EnergyBy() string {
	if s.EnergyJ.PerSampleBasis == energy.Measured {
		return "measured by meters"
	}
	return s.EnergyJ.Grounds
}

// ShownSteps says which steps of a run its schedule and figures show: one segment of the
// training steps of a whole batch, or the first steps of a simulated one. Their measurement differs from the mean
// over the counted steps.
type ShownSteps struct {
	Steps int `json:"steps"`
	Of    int `json:"of"` // training steps in the run

	Epoch  int `json:"epoch,omitempty"` // 0 means of a simulated run
	Epochs int `json:"of_epochs,omitempty"`
	First  int `json:"first_step,omitempty"` // from 1, as in steps.csv

	FirstStepS  float64 `json:"first_step_s"`            // of these steps, until the end of the first
	SteadyStepS float64 `json:"steady_step_s,omitempty"` // from the end of a step to the end of the next, in their second half; zero means a single step
	LowerBoundS float64 `json:"lower_bound_s"`           // of these steps, by the estimated times
}

// FirstCount says that the first step of each graph counts, as where there was no other.
func (s *Summary) FirstCount() bool { return s.Steps > 0 && s.Counted.Steps == s.Steps }

// String says it in words; it is empty where all steps are shown and none is numbered.
func (s *ShownSteps) String() string {
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

// Number is a float that is null in JSON where it is NaN or infinite.
type Number float64

func (n Number) MarshalJSON() ([]byte, error) {
	if !IsFinite(float64(n)) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

func (n *Number) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		*n = Number(math.NaN())
		return nil
	}
	return json.Unmarshal(data, (*float64)(n))
}

// Same reports whether two numbers are equal, or neither is finite.
func (n Number) Same(other Number) bool {
	return n == other || !IsFinite(float64(n)) && !IsFinite(float64(other))
}

// IsFinite reports whether v is neither NaN nor infinite. JSON has no other numbers.
func IsFinite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// RecordSummary says what of a training was recorded, where not all of it was: transfers, evictions and peaks in
// its summary, and everything in its schedule, are taken from the recorded steps. The modelled joules of other
// steps follow from the mean power of the recorded steps of their graph.
type RecordSummary struct {
	Steps int `json:"steps"` // of those that train
	Of    int `json:"of"`
}

// Recording is nil where all steps were recorded.
func Recording(o *plan.Totals) *RecordSummary {
	if o.Unrecorded == 0 {
		return nil
	}
	return &RecordSummary{o.Recorded, o.Steps}
}

func (s *RecordSummary) String() string {
	if s.Steps == s.Of {
		return "all training steps, and of other graphs the first; copies are of those, and the joules of the others of their mean power"
	}
	return fmt.Sprintf("%d of %d training steps; schedule and copies are of those, and the joules of the others of their mean power", s.Steps, s.Of)
}

// LoadSummary is the load of other programs on the cores while a training ran.
type LoadSummary struct {
	OtherCores float64 `json:"other_cores"` // that others kept busy on average
	Cores      int     `json:"cores"`       // of the machine
	Disturbed  bool    `json:"disturbed"`   // more than a machine at rest and the cores that were left idle
	OwnCores   float64 `json:"own_cores"`   // that the training kept busy on average

	SharedCores bool `json:"shared_cores,omitempty"` // there are more workers than cores
}

// NewLoadSummary describes a measured load in cores of this machine. workers is the number of cores that the training may use.
// The fewer there are, the more load of other programs passes as undisturbed, see [host.Load.Disturbed].
func NewLoadSummary(l host.Load, workers int) *LoadSummary {
	cores := runtime.NumCPU()
	return &LoadSummary{OtherCores: l.Cores(), OwnCores: cli.Ratio(l.Own.Seconds(), l.Window.Seconds()), Cores: cores, Disturbed: l.Disturbed(max(0, cores-workers)), SharedCores: workers > runtime.GOMAXPROCS(0)}
}

// ChosenDevices are the devices and the tiles or the strategy that the policy best chose.
type ChosenDevices struct {
	Devices     string  `json:"devices,omitempty"`             // as --devices takes them; empty: all
	Of          string  `json:"of,omitempty"`                  // likewise
	TimesAsFast float64 `json:"times_as_fast,omitempty"`       // as the plan on all of them; 0 means none is known
	Skipped     string  `json:"skipped,omitempty"`             // why nothing was compared
	Tiles       string  `json:"tiles,omitempty"`               // empty: by default, or as asked for
	Strategy    string  `json:"strategy,omitempty"`            // instead of tiles
	TilesFaster float64 `json:"tiles_times_as_fast,omitempty"` // as the plan with default tiles; 0 means none is known
}

// Some reports whether there are devices that the run does without.
func (c *ChosenDevices) Some() bool { return c != nil && c.Devices != "" }

// Print says it in a line.
func (c *ChosenDevices) Print(out io.Writer) {
	switch {
	case c == nil:
		return
	case c.Skipped != "":
		fmt.Fprintf(out, "devices   all, by %s: %s\n", flags.ListPolicy, c.Skipped)
		return
	}
	if c.Tiles != "" {
		with := ""
		if tiles, err := tiling.Parse(c.Tiles); err == nil && tiles.OfNetwork() != "" {
			with = ", with " + tiles.OfNetwork()
		}
		fmt.Fprintf(out, "tiles     chosen for the machine by a model of the layers%s%s; --lowering %s keeps to default ones\n", with, timesAsFast(c.TilesFaster, "default ones"), flags.DefaultTiles)
	}
	if c.Strategy != "" {
		fmt.Fprintf(out, "strategy  %s, chosen for the machine%s; --lowering %s keeps to default tiles\n", c.Strategy, timesAsFast(c.TilesFaster, "default tiles"), flags.DefaultTiles)
	}
	if c.Devices == "" {
		return
	}
	of := strings.Split(c.Of, ",")
	text := strings.Join(of[:min(len(of), 3)], ", ")
	if len(of) > 3 {
		text += "…"
	}
	fmt.Fprintf(out, "devices   %s of %s%s; --devices and --policy choose otherwise\n", strings.ReplaceAll(c.Devices, ",", ", "), text, timesAsFast(c.TimesAsFast, "all"))
}

// timesAsFast compares a choice with another one; 0 times means that nothing is known.
func timesAsFast(times float64, as string) string {
	switch {
	case times >= 1.005:
		return fmt.Sprintf(": %s times as fast as %s", cli.ThreeDigits(times), as)
	case times > 0:
		return ": as fast as " + as
	}
	return ""
}

// MachineClocks lists the wanted clocks of processors and GPUs that were set, or ignored.
type MachineClocks struct {
	Set     []string `json:"set,omitempty"`     // "cpu=slow at 1.2 GHz"
	Ignored []string `json:"ignored,omitempty"` // "cpu=slow": it ran at whatever clock the machine had
}

func (c *MachineClocks) String() string {
	switch {
	case c == nil:
		return ""
	case c.Set != nil:
		return " (set: " + strings.Join(c.Set, ", ") + ")"
	default:
		return " (not set: " + strings.Join(c.Ignored, ", ") + ")"
	}
}

// ObjectiveSummary is the part of a summary about an objective. It is exported since an embedded struct can be read back
// from JSON only if it is. The bound of the time is in the summary itself.
type ObjectiveSummary struct {
	Objective    string   `json:"objective"`
	LowerBoundJ  *float64 `json:"lower_bound_j,omitempty"`
	LowerBoundJS *float64 `json:"lower_bound_js,omitempty"` // of joules times seconds
	LowerBoundOf string   `json:"lower_bound_of"`           // the plans of which none is below
	// LowerBoundAll is the bound of all lowerings on all sets of the devices, in the unit of the objective.
	LowerBoundAll *float64 `json:"lower_bound_all,omitempty"`
	Gap           Number   `json:"gap"` // value over bound, minus 1; null where the plan is none of these
	Proven        bool     `json:"proven"`
	SteadyStepS   *float64 `json:"steady_step_s,omitempty"` // time of one step more, to which value and bound then refer
	SteadyStepJ   *float64 `json:"steady_step_j,omitempty"`
	Nodes         int      `json:"nodes"`
	DeadlineS     float64  `json:"deadline_s,omitempty"` // that the step keeps

	*best.Explanation
}

// MachineFile is the machine among whose devices a search has chosen.
const MachineFile = "machine.toml"

// AddLast adds what the last epoch came to.
func (s *Summary) AddLast(e *metrics.Epoch) {
	loss := Number(e.Loss)
	s.TrainingLoss, s.LossOf = &loss, "training"
	if e.Tested {
		tested := Number(e.TestLoss)
		s.TestLoss, s.TestAccuracy, s.AccuracyOf = &tested, &e.TestAccuracy, "test"
	}
}

// AddPerplexity adds the perplexity of the test, or of the training where there is none.
func (s *Summary) AddPerplexity(m *nn.Model) {
	loss := cmp.Or(s.TestLoss, s.TrainingLoss)
	if p, known := m.Perplexity(float64(*loss)); known {
		s.Perplexity = (*Number)(&p)
	}
}

// FrontColumns are the columns of the table of a front.
var FrontColumns = []string{"seconds", "joules", "devices", "tiles", "policy", "front", "chosen"}

// YesNo is a truth value as a cell of a CSV table.
func YesNo(is bool) string { return map[bool]string{true: "yes", false: "no"}[is] }

// CSV is a number in a table; empty where there is none.
func (n Number) CSV() string {
	if !IsFinite(float64(n)) {
		return ""
	}
	return strconv.FormatFloat(float64(n), 'g', -1, 64)
}

// FrontFile is the table of a front of time against energy.
const FrontFile = "front.csv"

// Covers reports whether there is a reading for every device that runs layers, so that
// their sum stands for the run.
func Covers(readings []meter.Reading, p *platform.Platform) bool {
	missing := func(d platform.Device) bool {
		return !d.PlacedOnly && !slices.ContainsFunc(readings, func(r meter.Reading) bool { return r.Of == energy.MeterOf(&d) })
	}
	return len(readings) > 0 && !slices.ContainsFunc(p.Devices, missing)
}
