package flags

import (
	"bytes"
	"cmp"
	"encoding/json"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"dahl/cmd/cli"
	"dahl/dag"
	"dahl/kernels"
	"dahl/kernels/calls"
	"dahl/nn"
	"dahl/nn/data"
	"dahl/nn/files"
	"dahl/nn/rates"
	"dahl/plan/strategy"
	"dahl/plan/tiling"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/policy"
	"dahl/train"
)

// ThisMachine is the platform file, or the detected machine, with the devices and as
// many workers as asked for.
func ThisMachine(o *Options) (*platform.Platform, error) {
	if o.Platform == "" && o.AsksBest() {
		o.Policy = ListPolicy // the rates of a detected machine are guesses, by which sets cannot be compared
	}
	p, err := cli.Machine(o.Platform, o.Devices, false)
	if err == nil {
		p, err = o.Prepared(p)
	}
	if err == nil {
		p, err = o.selected(p)
	}
	if err != nil {
		return nil, err
	}
	return cli.WithWorkers(p, o.Workers)
}

// StartMeters starts the meters of a training on this machine, and IdleWindow is how long they are read while nothing runs.
// Tests have others.
var (
	StartMeters = train.StartMeters
	IdleWindow  = 3 * time.Second
)

// Machine is the platform file, prepared, and what of it is selected.
func (o *Options) Machine() (whole, some *platform.Platform, err error) {
	whole, err = cli.LoadPlatform(o.Platform)
	if err == nil {
		whole, err = o.Prepared(whole)
	}
	if err != nil {
		return nil, nil, err
	}
	some, err = o.selected(whole)
	return whole, some, err
}

// selected returns a prepared platform with the devices that --devices or else a plan file names,
// and with all devices without either. Some of them have to be of a kind for which --variant is.
func (o *Options) selected(p *platform.Platform) (*platform.Platform, error) {
	list, err := o.DeviceList()
	if err != nil {
		return nil, cli.AsInput(err)
	}
	if list != "" {
		from := "--devices"
		if o.Devices == "" {
			from = o.Plan
		}
		if p, err = p.Select(list); err != nil {
			return nil, cli.InputErrorf("%s: %w", from, err)
		}
	}
	if !train.HasVariant(p, o.Variant) {
		return nil, cli.InputErrorf("--variant %q: no kernel has it for the devices of platform %q; dahl kernels lists the variants of each kind", o.Variant, p.Name)
	}
	return p, nil
}

// Prepared is the platform at the clocks of --clock, with the cap of --power-cap. Only variants that --precision allows
// keep their models, so that no other is chosen for being fast. The variants of a plan run whatever their precision.
func (o *Options) Prepared(p *platform.Platform) (*platform.Platform, error) {
	var err error
	for _, setting := range o.Clocks {
		device, clock, _ := strings.Cut(setting, "=")
		if p, err = p.WithClock(device, clock); err != nil {
			return nil, cli.InputErrorf("--clock %s: %w", setting, err)
		}
	}
	if o.PowerCap > 0 {
		if p, err = p.WithCap(o.PowerCap); err != nil {
			return nil, cli.InputErrorf("--power-cap %g W: %w", o.PowerCap, err)
		}
	}
	if err := cmp.Or(CheckVariant(o.Variant), CheckPrecision(o.Precision)); err != nil {
		return nil, err
	}
	if o.Plan != "" {
		return p, nil
	}
	return train.Within(p, o.Precision, o.Variant)
}

// CheckVariant refuses a name that no kernel has.
func CheckVariant(name string) error {
	if name == "" {
		return nil
	}
	if err := kernels.CheckVariant(name); err != nil {
		return cli.InputErrorf("--variant %w", err)
	}
	return nil
}

// CheckPrecision refuses a name that is no precision, as an error of the input. An empty name is accepted, and means full precision.
func CheckPrecision(name string) error {
	if name == "" {
		return nil
	}
	return cli.CheckName("precision", name, calls.Precisions())
}

// optimizer applies the flags to the model's default.
func (o *Options) optimizer(m *nn.Model) (nn.Optimizer, error) {
	opt := m.Defaults.Optimizer
	if o.Optimizer != "" && o.Optimizer != opt.Name() {
		info, err := nn.OptimizerByName(o.Optimizer)
		if err != nil {
			return nil, cli.CheckName("optimizer", o.Optimizer, OptimizerNames())
		}
		opt = info.New()
	}
	switch q := opt.(type) {
	case nn.SGD:
		set(&q.LearningRate, o.LR)
		set(&q.Momentum, o.Momentum)
		set(&q.WeightDecay, o.WeightDecay)
		if o.Nesterov != nil {
			q.Nesterov = *o.Nesterov
		}
		opt = q
	case nn.Adam:
		if o.Momentum != nil || o.Nesterov != nil {
			return nil, cli.InputErrorf("--momentum and --nesterov belong to sgd; the optimiser is %s", q.Name())
		}
		set(&q.LearningRate, o.LR)
		set(&q.WeightDecay, o.WeightDecay)
		opt = q
	}
	return opt, cli.AsInput(opt.Check())
}

// set takes a number that is given.
func set(dst, v *float64) {
	if v != nil {
		*dst = *v
	}
}

// Trained is the model with the way of training that the flags ask for.
func (o *Options) Trained(m *nn.Model) (*nn.Model, error) {
	next := *m
	d := &next.Defaults
	var err error
	if d.Optimizer, err = o.optimizer(m); err != nil {
		return nil, err
	}
	if o.Schedule != "" {
		if d.Schedule, err = rates.Parse(o.Schedule); err != nil {
			return nil, cli.InputErrorf("--schedule: %w", err)
		}
	}
	if o.Loss != "" && o.Loss != d.Loss.Name {
		d.Loss = nn.Loss{Name: o.Loss}
	}
	set(&d.Loss.LabelSmoothing, o.LabelSmoothing)
	set(&d.ClipNorm, o.ClipNorm)
	return &next, cli.AsInput(d.Loss.Check())
}

// Training returns the training options that the flags set, without decisions.
func (o *Options) Training() (t train.Options, err error) {
	t = train.Options{Batch: o.Batch, Epochs: o.Epochs, Seed: o.Seed, Shuffle: o.Shuffle, Tiles: o.Tiles, Variant: o.Variant, Precision: o.Precision,
		Record: o.Record, Stream: o.Stream, KeepEvery: o.ContinueOnLoss, ContinueOnNaN: o.ContinueOnNaN, AnyClock: o.AnyClock, Evaluate: o.Inference, Outputs: o.Outputs}
	if every, ok := strings.CutPrefix(o.Checkpoint, "every="); ok {
		if t.Checkpoint, err = train.ParseCheckpointEvery(every); err != nil {
			return t, cli.InputErrorf("--checkpoint %s: %w", o.Checkpoint, err)
		}
	} else if o.Checkpoint != "" && o.Checkpoint != NeverCheckpoint {
		return t, cli.InputErrorf("--checkpoint %s: write every=100steps, every=5min or %s", o.Checkpoint, NeverCheckpoint)
	}
	if t.Devices, err = o.DeviceList(); err != nil {
		return t, cli.AsInput(err)
	}
	if t.Type, err = cli.RealType(o.DType); err != nil {
		return t, err
	}
	if o.Tile > 0 {
		t.Tiles = tiling.Of(tiling.Base{Kind: tiling.Samples, Number: o.Tile})
	}
	if of, err := strategy.ByName(o.Policy); err == nil && of.OfNetworks() && o.Recorded == nil {
		t.Strategy = of
	}
	t.Lowering, err = o.lowering()
	return t, err
}

// lowering reads the lowering file, or the lowering of a plan; nil means the default.
func (o *Options) lowering() (*dag.Lowering, error) {
	switch {
	case o.Lowering == "" && o.Plan != "":
		made, err := o.madeFor()
		return made.Lowering, cli.AsInput(err)
	case o.Lowering == "" || o.Lowering == DefaultTiles || o.Lowering == AllTiles:
		return o.Recorded, nil
	}
	if err := cli.CheckRegular(o.Lowering); err != nil {
		return nil, err
	}
	l, err := files.LoadLowering(o.Lowering)
	return &l, cli.AsInput(err)
}

// madeFor reads the lowering and the devices from a plan file. It returns nothing for a file that
// is no JSON: the reader of plans reports the mistake with its place.
func (o *Options) madeFor() (made struct {
	Lowering *dag.Lowering `json:"lowering"`
	On       string        `json:"on"`
}, err error) {
	if err := cli.CheckWhole(o.Plan); err != nil {
		return made, err
	}
	data, err := os.ReadFile(o.Plan)
	if found := made; json.Unmarshal(bytes.TrimPrefix(data, []byte(dag.Mark)), &found) == nil {
		made = found
	}
	return made, err
}

// DeviceList returns the list of --devices, or else the list in a plan file.
func (o *Options) DeviceList() (string, error) {
	if o.Devices != "" || o.Plan == "" {
		return o.Devices, nil
	}
	made, err := o.madeFor()
	return made.On, err
}

// NeverCheckpoint is the --checkpoint of a training that is not saved.
const NeverCheckpoint = "never"

// FittedModel fits the network to its data as execute does, so that both worlds
// run one graph. Of synthetic data only size and shape are looked at. Test samples count in a whole training and in an inference alone.
func FittedModel(o *Options) (*nn.Model, train.Samples, error) {
	m, err := o.model()
	if err != nil {
		return nil, train.Samples{}, err
	}
	if o.Data == "" {
		o.Data = train.DefaultData(m)
	}
	opt, err := o.dataOptionsOf(m)
	if err != nil {
		return nil, train.Samples{}, err
	}
	spec, synthetic := strings.CutPrefix(o.Data, "synthetic")
	if synthetic {
		opt.Limit = 1
	}
	var d train.Data
	if o.Inference {
		d, err = openTested(o.Data, opt)
	} else if o.Epochs > 0 && !synthetic {
		d, err = train.OpenDataAs(o.Data, opt)
	} else {
		d.Train, err = data.Open(o.Data, opt)
	}
	if err != nil {
		return nil, train.Samples{}, cli.AsInput(err)
	}
	warnOf(o.Data, d.Train.Notes)
	n := d.Samples()
	if synthetic {
		s, err := data.ParseSynthetic(strings.TrimPrefix(spec, ":"))
		if err != nil {
			return nil, train.Samples{}, cli.AsInput(err)
		}
		n.Train = s.Samples - o.Offset
		if o.Limit > 0 {
			n.Train = min(n.Train, o.Limit)
		}
		if o.Epochs > 0 || o.Inference {
			n.Test = s.Samples
		}
	}
	m, err = o.fitted(m, d.Train, n)
	return m, n, err
}

// openTested opens data for an inference. Data without a test set are predicted as a whole.
func openTested(name string, opt data.Options) (train.Data, error) {
	d, err := train.OpenDataAs(name, opt)
	if d.Test == nil {
		d.Test = d.Train
	}
	return d, err
}

// fitted is a network for data of which no sample has been made or read yet. It gives the batch where there is none: the
// model's, or all samples where they are fewer. A batch of a training that was asked for has to be there.
func (o *Options) fitted(m *nn.Model, d *data.Dataset, n train.Samples) (*nn.Model, error) {
	if o.Inference {
		o.Batch = min(cmp.Or(o.Batch, m.Defaults.Batch), n.Test)
	} else if o.Batch == 0 {
		o.Batch = min(m.Defaults.Batch, n.Train)
	}
	if o.Batch > n.Train && !o.Inference {
		return nil, cli.InputErrorf("--batch %d: there are %d training samples in %s; want at most as many", o.Batch, n.Train, o.Data)
	}
	return train.Fit(m, d)
}

// TrainingData opens the data and fits the model to it.
func TrainingData(o *Options) (m *nn.Model, d train.Data, err error) {
	if o.Model == "" {
		return nil, d, cli.InputErrorf("name a network with --model; a graph file has no kernels to execute")
	}
	if o.ContinueOnLoss < 0 {
		return nil, d, cli.InputErrorf("--continue-on-loss=%d: want at least 1 step", o.ContinueOnLoss)
	}
	err = cmp.Or(CheckRounds("epochs", o.Epochs, 1), cli.CheckNotNegative("record", o.Record), cli.CheckNotNegative("steps", o.Steps), o.CheckData())
	if err != nil {
		return nil, d, err
	}
	if m, err = o.model(); err != nil {
		return nil, d, err
	}
	if o.Data == "" {
		o.Data = train.DefaultData(m)
	}
	opt, err := o.dataOptionsOf(m)
	if err != nil {
		return nil, d, err
	}
	batch := cmp.Or(o.Batch, m.Defaults.Batch)
	if o.Steps > 0 && batch > 0 && o.Steps <= math.MaxInt/batch && (opt.Limit == 0 || opt.Limit > o.Steps*batch) { // no data have more than the greatest int
		opt.Limit = o.Steps * batch
	}
	open := train.OpenDataAs
	if o.Inference {
		open = openTested
	}
	if d, err = open(o.Data, opt); err != nil {
		return nil, d, err
	}
	warnOf(o.Data, d.Train.Notes)
	if d.Test != nil {
		warnOf(o.Data, d.Test.Notes)
	}
	m, err = o.fitted(m, d.Train, d.Samples())
	return m, d, err
}

// Planned tells whether the plan was surely made before the run.
func (o *Options) Planned() (bool, error) {
	if o.Plan != "" {
		return true, nil
	}
	scheduler, err := o.Scheduler()
	return err == nil && !scheduler.Doc().Online, cli.AsInput(err)
}

// UnitsOf are the devices that --devices names, with how many of their units.
func (o *Options) UnitsOf(p *platform.Platform) (map[string]int, error) {
	p, err := o.Prepared(p)
	if err != nil {
		return nil, err
	}
	chosen, err := o.selected(p)
	if err != nil {
		return nil, err
	}
	units := map[string]int{}
	for i := range chosen.Devices {
		if d := &chosen.Devices[i]; !d.PlacedOnly {
			units[d.Name] = d.Count
		}
	}
	return units, nil
}

// Scheduler is the scheduler for a given set of devices.
func (o *Options) Scheduler() (schedule.Policy, error) {
	if o.Policy == BestPolicy {
		return policy.HEFT, nil
	}
	switch of, err := strategy.ByName(o.Policy); {
	case err != nil:
		return policy.ByName(o.Policy)
	case !of.OfNetworks():
		return of, nil
	case of.Split.Order != "":
		return policy.ByName(of.Split.Order)
	}
	return policy.HEFT, nil
}

// AsksBest reports whether the policy best is to plan.
func (o *Options) AsksBest() bool { return o.Policy == BestPolicy && o.Plan == "" && o.Objective == "" }

// ChoosesTiles reports whether the policy best chooses tiles, too.
func (o *Options) ChoosesTiles() bool {
	return o.AsksBest() && o.Model != "" && o.Lowering == "" && o.Recorded == nil && o.Tile == 0 && o.Tiles == (tiling.Tiling{})
}

// UniformInit begins an --init that draws all weights from one interval.
const UniformInit = "uniform:"

// NewInitialiser reads --init: nothing for PyTorch's default distributions,
// uniform:A:B for U(A, B), else a file of weights with the parameters of a network of a type.
func NewInitialiser(o *Options, m *nn.Model, t dag.DType) (train.Initialiser, error) {
	if o.Init == "" {
		return nil, nil
	}
	bounds, ok := strings.CutPrefix(o.Init, UniformInit)
	if !ok {
		return train.FromFile(o.Init, m, t)
	}
	a, b, _ := strings.Cut(bounds, ":")
	lo, errLo := strconv.ParseFloat(a, 64)
	hi, errHi := strconv.ParseFloat(b, 64)
	if errLo != nil || errHi != nil || !(lo < hi) || math.IsInf(hi-lo, 0) {
		return nil, cli.InputErrorf("--init %s: want two finite numbers, the smaller first, as in %s-0.1:0.1", o.Init, UniformInit)
	}
	if t == dag.Float32 && max(-lo, hi) > math.MaxFloat32 {
		return nil, cli.InputErrorf("--init %s: no float32 is beyond %g; take narrower bounds", o.Init, math.MaxFloat32)
	}
	return train.Uniform(o.Seed, lo, hi), nil
}
