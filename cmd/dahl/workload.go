package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"dahl/cmd/cli"
	"dahl/dag"
	"dahl/execute"
	"dahl/kernels"
	"dahl/nn"
	"dahl/plan/best"
	"dahl/plan/tiling"
	"dahl/platform"
	"dahl/rundir"
	"dahl/schedule"
	"dahl/schedule/place"
	"dahl/train"
)

// neverCheckpoint is the --checkpoint of a training that is not saved.
const neverCheckpoint = "never"

// workload is what a run works on, and the flags that it comes from.
type workload struct {
	train.Workload
	opts *options

	whole   *platform.Platform // of which --devices select; nil: not kept
	all     *platform.Platform // from whose devices a search chose; nil: there was none
	search  *searched          // nil: there was none
	chosen  *chosenDevices     // by the policy best; nil: it has left out none
	samples train.Samples
	clocks  *machineClocks // of a training; nil: none were asked for
	tiles   *tileSearch    // what --lowering best found; nil: it was not asked for
	inputs  []cli.Identity // files that the options name, for the manifest
}

// searched is a search for a plan, and what it has found.
type searched struct {
	space *train.Space
	found *best.Result
}

// thisMachine is the platform file, or the detected machine, with the devices and as
// many workers as asked for.
func thisMachine(o *options) (*platform.Platform, error) {
	if o.Platform == "" && o.asksBest() {
		o.Policy = listPolicy // the rates of a machine that is detected are guesses, which tell no sets apart
	}
	p, err := cli.Machine(o.Platform, o.Devices, false)
	if err == nil {
		p, err = o.prepared(p)
	}
	if err == nil {
		p, err = o.selected(p)
	}
	if err != nil {
		return nil, err
	}
	return cli.WithWorkers(p, o.Workers)
}

// machine is the platform file, prepared, and what of it is selected.
func (o *options) machine() (whole, some *platform.Platform, err error) {
	whole, err = cli.LoadPlatform(o.Platform)
	if err == nil {
		whole, err = o.prepared(whole)
	}
	if err != nil {
		return nil, nil, err
	}
	some, err = o.selected(whole)
	return whole, some, err
}

// selected is a prepared platform with the devices that --devices names, else those of a plan file;
// all without either. Some of them have to be of a kind for which --variant is.
func (o *options) selected(p *platform.Platform) (*platform.Platform, error) {
	list, err := o.devices()
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

// prepared is the platform at the clocks of --clock, with the cap of --power-cap. Its models are those of the variants that
// --precision allows, so that no other is chosen for being fast; what a plan says runs
// whatever its precision.
func (o *options) prepared(p *platform.Platform) (*platform.Platform, error) {
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
	if err := cmp.Or(checkVariant(o.Variant), checkPrecision(o.Precision)); err != nil {
		return nil, err
	}
	if o.Plan != "" {
		return p, nil
	}
	return train.Within(p, o.Precision, o.Variant)
}

// checkVariant refuses a name that no kernel has.
func checkVariant(name string) error {
	if name == "" {
		return nil
	}
	if err := kernels.CheckVariant(name); err != nil {
		return cli.InputErrorf("--variant %w", err)
	}
	return nil
}

func checkPrecision(name string) error {
	if name == "" {
		return nil
	}
	return cli.CheckName("precision", name, kernels.Precisions())
}

// optimizer applies the flags to the model's default.
func (o *options) optimizer(m *nn.Model) (nn.Optimizer, error) {
	opt := m.Defaults.Optimizer
	if o.Optimizer != "" && o.Optimizer != opt.Name() {
		info, err := nn.OptimizerByName(o.Optimizer)
		if err != nil {
			return nil, cli.CheckName("optimizer", o.Optimizer, optimizerNames())
		}
		opt = info.New()
	}
	switch q := opt.(type) {
	case nn.SGD:
		set(&q.LearningRate, o.LR)
		set(&q.Momentum, o.Momentum)
		set(&q.WeightDecay, o.WeightDecay)
		q.Nesterov = q.Nesterov || o.Nesterov
		opt = q
	case nn.Adam:
		if o.Momentum != nil || o.Nesterov {
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

// trained is the model with the way of training that the flags ask for.
func (o *options) trained(m *nn.Model) (*nn.Model, error) {
	next := *m
	d := &next.Defaults
	var err error
	if d.Optimizer, err = o.optimizer(m); err != nil {
		return nil, err
	}
	if o.Schedule != "" {
		if d.Schedule, err = nn.ParseSchedule(o.Schedule); err != nil {
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

// newWorkload loads everything the options name and makes the decisions for a run on this
// machine. The model was fitted to the data.
func newWorkload(ctx context.Context, o *options, m *nn.Model, p *platform.Platform, d train.Data) (*workload, error) {
	runnable, err := execute.Runnable(p)
	if err != nil {
		return nil, cli.AsInput(err)
	}
	w := &workload{opts: o, Workload: train.Workload{Model: m, Data: d, Platform: runnable}}
	w.samples = d.Samples()
	if err := w.build(ctx, w.samples); err != nil {
		return nil, err
	}
	if _, err := w.settle(ctx); err != nil {
		return nil, err
	}
	err = w.Afford()
	o.Stream = w.Options.Stream
	return w, err
}

// build makes the program, with the tiles that are best where these are asked for.
func (w *workload) build(ctx context.Context, n train.Samples) (err error) {
	if w.inputs, err = hashInputs(w.opts); err != nil {
		return err
	}
	if w.opts.Lowering == bestTiles {
		if err := w.opts.checkBestTiles(w.Platform); err != nil {
			return err
		}
	}
	if o := w.opts; o.Tile > o.Batch {
		return cli.InputErrorf("--tile %d: a step has %d images; want at most as many", o.Tile, o.Batch)
	}
	if err := w.buildProgram(n); err != nil || w.opts.Lowering != bestTiles {
		return err
	}
	return w.searchTiles(ctx)
}

func (w *workload) buildProgram(n train.Samples) error {
	o := w.opts
	if (o.Model == "") == (o.Graph == "") {
		return cli.InputErrorf("name a network with --model or a task graph with --graph")
	}
	if o.Graph != "" {
		g, err := rundir.ReadAs(o.Graph, readGraph)
		if err == nil {
			g, err = dag.Expand(g)
		}
		if err != nil {
			return cli.AsInput(err)
		}
		w.Program = &dag.Program{Name: g.Name, Graphs: []*dag.Graph{g}, Order: []dag.Segment{{Graph: 0, Steps: max(1, o.Steps)}}}
		w.Options.Variant, w.Options.Seed = o.Variant, o.Seed
		w.Options.Devices, err = o.devices()
		return cli.AsInput(err)
	}
	options, err := o.training()
	if err != nil {
		return err
	}
	m, err := o.trained(w.Model)
	if err != nil {
		return err
	}
	w.Model = m
	options.Elsewhere = w.Options.Elsewhere
	w.Options = options
	if err := w.CheckVariant(); err != nil {
		return err
	}
	err = w.Lower(n)
	if from := cmp.Or(o.Lowering, o.Plan); err != nil && from != "" && from != bestTiles {
		err = fmt.Errorf("with the lowering of %s: %w", from, err)
	}
	o.Batch = w.Options.Batch
	return err
}

// training is what the flags say of the training of a network, but for the decisions.
func (o *options) training() (t train.Options, err error) {
	t = train.Options{Batch: o.Batch, Epochs: o.Epochs, Seed: o.Seed, Shuffle: o.Shuffle, Tiles: o.tiles, Variant: o.Variant, Precision: o.Precision,
		Record: o.Record, Stream: o.Stream, KeepEvery: o.ContinueOnLoss, ContinueOnNaN: o.ContinueOnNaN, AnyClock: o.anyClock}
	if every, ok := strings.CutPrefix(o.Checkpoint, "every="); ok {
		if t.Checkpoint, err = train.ParseCheckpointEvery(every); err != nil {
			return t, cli.InputErrorf("--checkpoint %s: %w", o.Checkpoint, err)
		}
	} else if o.Checkpoint != "" && o.Checkpoint != neverCheckpoint {
		return t, cli.InputErrorf("--checkpoint %s: write every=100steps, every=5min or %s", o.Checkpoint, neverCheckpoint)
	}
	if t.Devices, err = o.devices(); err != nil {
		return t, cli.AsInput(err)
	}
	if t.Type, err = cli.RealType(o.DType); err != nil {
		return t, err
	}
	if o.Tile > 0 {
		t.Tiles = tiling.Of(tiling.Base{Kind: tiling.Samples, Number: o.Tile})
	}
	t.Lowering, err = o.lowering()
	return t, err
}

// lowering reads the lowering file, or the lowering of a plan; nil: it is the default, from which the search for
// the best tiles begins.
func (o *options) lowering() (*dag.Lowering, error) {
	if err := cli.CheckRegular(o.Lowering); err != nil {
		return nil, err
	}
	switch {
	case o.Lowering == "" && o.Plan != "":
		made, err := o.madeFor()
		return made.Lowering, cli.AsInput(err)
	case o.Lowering == "" || o.Lowering == bestTiles:
		return nil, nil
	}
	l, err := nn.LoadLowering(o.Lowering)
	return &l, cli.AsInput(err)
}

// madeFor is what a plan file says of the program and the machine that it is for; nothing where it
// is not JSON, since reading the plan itself says what is wrong, and where.
func (o *options) madeFor() (made struct {
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

// devices is the list of --devices, else that of a plan file.
func (o *options) devices() (string, error) {
	if o.Devices != "" || o.Plan == "" {
		return o.Devices, nil
	}
	made, err := o.madeFor()
	return made.On, err
}

// settle makes all decisions: by the plan file, for the objective, or by the policy. What it returns is of an
// objective; nil: there is none.
func (w *workload) settle(ctx context.Context) (*best.Result, error) {
	if err := w.AffordPlan(); err != nil {
		return nil, err
	}
	switch {
	case w.opts.Objective != "":
		return w.optimize(ctx)
	case w.opts.asksBest():
		return nil, w.chooseDevices(ctx)
	}
	return nil, w.decide()
}

// decide makes all decisions: by the plan file for the first graph, else by the policy on all devices.
func (w *workload) decide() (err error) {
	if w.Options.Policy, err = w.opts.policy(); err != nil {
		return cli.AsInput(err)
	}
	if w.opts.Plan != "" {
		if w.Options.Plan, err = rundir.ReadPlan(w.opts.Plan, w.Program.Graphs[0], w.Platform); err != nil {
			return cli.AsInput(err)
		}
	}
	return w.hintRoom(w.Choose())
}

// hintRoom says what needs less room than a plan, where that is what is missing.
func (w *workload) hintRoom(err error) error {
	room := (*place.RoomError)(nil)
	if !errors.As(err, &room) || w.opts.Plan != "" {
		return err
	}
	if train.Accelerators(w.Platform) > 1 && w.Options.Policy.Name != dataParallel {
		other := w.Workload
		other.Options.Policy, _ = schedule.PolicyByName(dataParallel)
		if other.Choose() == nil {
			return fmt.Errorf("%w; it fits with --policy %s", err, dataParallel)
		}
	}
	if layers := w.Recomputable(w.samples); layers != nil {
		return fmt.Errorf("%w; it fits with recompute = true for %s in a file for --lowering, as graph --export FILE.toml writes one", err, strings.Join(layers, ", "))
	}
	if room.Memory == w.Platform.Memories[w.Platform.HostMemory()].Name {
		return err
	}
	return fmt.Errorf("%w; take a smaller --batch, or --policy dmdar, which moves parts of what a plan keeps whole", err)
}

// variants lists what the costs fix for the main graph, as "device op type
// shape: variant", sorted.
func (w *workload) variants() (lines []string) {
	p := &w.Decision.Graphs[0].Problem
	for device, calls := range p.Costs.Variants(p.Graph, p.Platform) {
		for call, variant := range calls {
			lines = append(lines, fmt.Sprintf("%s %s: %s", device, call, variant))
		}
	}
	slices.Sort(lines)
	return lines
}
