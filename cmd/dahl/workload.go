package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"dahl/dag"
	"dahl/execute"
	"dahl/kernels"
	"dahl/nn"
	"dahl/plan"
	"dahl/platform"
	"dahl/platforms"
	"dahl/schedule"
	"dahl/train"
)

// workload is what a run works on, and the flags that it comes from.
type workload struct {
	train.Workload
	opts *options

	tiles  *plan.TileSearch // what --lowering best found; nil: it was not asked for
	inputs []identity       // files that the options name, for the manifest
}

// loadPlatform reads a platform file, or one that ships with dahl by its name.
func loadPlatform(name string) (*platform.Platform, error) {
	p, err := platforms.Load(name)
	if err == nil {
		return p, nil
	}
	if _, missing := os.Stat(name); missing != nil {
		err = fmt.Errorf("%w%s", err, didYouMean(name, platforms.Names()))
	}
	return nil, asInput(err)
}

// selected is the platform with the devices that --devices names; all without it. Some of
// them have to be of a kind for which --variant is. Its models are those of the variants that
// --precision allows.
func (o *options) selected(p *platform.Platform, err error) (*platform.Platform, error) {
	if err != nil {
		return nil, err
	}
	if o.Devices != "" {
		if p, err = p.Select(o.Devices); err != nil {
			return nil, inputErrorf("--devices: %w", err)
		}
	}
	if err := checkVariant(o.Variant); err != nil {
		return nil, err
	}
	if o.Variant != "" && !slices.ContainsFunc(p.Devices, func(d platform.Device) bool { return isVariantOf(o.Variant, d.Kind) }) {
		return nil, inputErrorf("--variant %q: no kernel has it for the devices of platform %q; dahl kernels lists the variants of each kind", o.Variant, p.Name)
	}
	return o.within(p)
}

// isVariantOf reports whether some kernel has a variant for a kind of devices.
func isVariantOf(name, kind string) bool {
	return slices.ContainsFunc(kernels.Kernels(), func(k kernels.Kernel) bool {
		return slices.ContainsFunc(k.Variants, func(v kernels.Variant) bool { return v.Name == name && v.RunsOn(kind) })
	})
}

// checkVariant refuses a name that no kernel has.
func checkVariant(name string) error {
	if name == "" {
		return nil
	}
	if err := kernels.CheckVariant(name); err != nil {
		return inputErrorf("--variant %w", err)
	}
	return nil
}

// loadModel finds a built-in model or reads a model file.
func loadModel(name string) (*nn.Model, error) {
	if err := checkModelFile(name); err != nil {
		return nil, err
	}
	if isFile(name) {
		m, err := nn.LoadModel(name)
		return m, asInput(err)
	}
	m, err := nn.ModelByName(name)
	if err != nil {
		return nil, inputErrorf("%v, and no model file (.toml)%s", err, didYouMean(name, modelNames()))
	}
	return m, nil
}

// isFile tells the name of a model file from that of a built-in model.
func isFile(model string) bool {
	return strings.HasSuffix(model, ".toml") || strings.ContainsRune(model, os.PathSeparator)
}

// optimizer applies the flags to the model's default.
func (o *options) optimizer(m *nn.Model) (nn.Optimizer, error) {
	opt := m.Defaults.Optimizer
	if o.Optimizer != "" && o.Optimizer != opt.Name() {
		info, err := nn.OptimizerByName(o.Optimizer)
		if err != nil {
			return nil, inputErrorf("--optimizer %q: want %s", o.Optimizer, oneOf(optimizerNames()))
		}
		opt = info.New()
	}
	set := func(dst *float64, v *float64) {
		if v != nil {
			*dst = *v
		}
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
			return nil, inputErrorf("--momentum and --nesterov belong to sgd; the optimiser is adam")
		}
		set(&q.LearningRate, o.LR)
		set(&q.WeightDecay, o.WeightDecay)
		opt = q
	}
	return opt, asInput(opt.Check())
}

// newWorkload loads everything the options name and makes the decisions for a run on this
// machine. The model was fitted to the data.
func newWorkload(o *options, m *nn.Model, p *platform.Platform, d train.Data) (*workload, error) {
	runnable, err := execute.Runnable(p)
	if err != nil {
		return nil, asInput(err)
	}
	w := &workload{opts: o, Workload: train.Workload{Model: m, Data: d, Platform: runnable}}
	if err := w.buildProgram(d.Samples()); err != nil {
		return nil, err
	}
	return w, w.decide()
}

func (w *workload) buildProgram(n train.Samples) error {
	o := w.opts
	if (o.Model == "") == (o.Graph == "") {
		return inputErrorf("name a network with --model or a task graph with --graph")
	}
	if o.Graph != "" {
		g, err := loadGraph(o.Graph)
		if err != nil {
			return err
		}
		w.Program = &dag.Program{Name: g.Name, Graphs: []*dag.Graph{g}, Order: []dag.Segment{{Graph: 0, Steps: max(1, o.Steps)}}}
		w.Options.Variant, w.Options.Seed = o.Variant, o.Seed
		return nil
	}
	var err error
	if w.Model == nil {
		if w.Model, err = loadModel(o.Model); err != nil {
			return err
		}
	}
	elsewhere := w.Options.Elsewhere
	if w.Options, err = o.training(w.Model); err != nil {
		return err
	}
	w.Options.Elsewhere = elsewhere
	if err := w.CheckVariant(); err != nil {
		return err
	}
	err = w.Lower(n)
	if from := o.loweringFile(); err != nil && from != "" {
		err = fmt.Errorf("with the lowering of %s: %w", from, err)
	}
	o.Batch = w.Options.Batch
	return err
}

// training is what the flags say of the training of a network.
func (o *options) training(m *nn.Model) (t train.Options, err error) {
	t = train.Options{Batch: o.Batch, Epochs: o.Epochs, Seed: o.Seed, Shuffle: o.Shuffle, Adapt: o.adapt, Variant: o.Variant, Precision: o.Precision,
		Devices: o.Devices, Record: o.Record, KeepEvery: o.ContinueOnLoss, ContinueOnNaN: o.ContinueOnNaN}
	if t.Type, err = dag.ParseDType(o.DType); err != nil || t.Type != dag.Float32 && t.Type != dag.Float64 {
		return t, inputErrorf("--dtype %q: want float32 or float64", o.DType)
	}
	if t.Optimizer, err = o.optimizer(m); err != nil {
		return t, err
	}
	if o.Batch < 0 {
		return t, inputErrorf("--batch %d: want at least 1", o.Batch)
	}
	if t.Policy, err = schedule.PolicyByName(o.Policy); err != nil {
		return t, asInput(err)
	}
	t.Lowering, err = o.lowering()
	return t, err
}

// loweringFile is the file that the lowering comes from; empty: it is derived.
func (o *options) loweringFile() string {
	switch {
	case o.Lowering == bestTiles:
		return ""
	case o.Lowering != "":
		return o.Lowering
	}
	return o.Plan
}

// lowering reads the lowering file, or the lowering of a plan; nil: it is the default, or for
// the best tiles what sweepTiles makes of it.
func (o *options) lowering() (*dag.Lowering, error) {
	switch {
	case o.Lowering == "" && o.Plan != "":
		return loweringOfPlan(o.Plan)
	case o.Lowering == bestTiles && o.adapt == nil:
		panic("dahl: the best tiles have not been looked for")
	case o.Lowering == "" || o.Lowering == bestTiles:
		return nil, nil
	}
	l, err := nn.LoadLowering(o.Lowering)
	return &l, asInput(err)
}

// loweringOfPlan is the granularity that a plan was made for; nil where its file
// does not say.
func loweringOfPlan(path string) (*dag.Lowering, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, asInput(err)
	}
	var plan struct {
		Lowering *dag.Lowering `json:"lowering"`
	}
	if err := json.Unmarshal(data, &plan); err != nil {
		return nil, nil // reading the plan itself says what is wrong, and where
	}
	return plan.Lowering, nil
}

// loadGraph reads a graph file, in the text form if its name ends in .txt.
func loadGraph(path string) (*dag.Graph, error) {
	read := dag.ReadJSON
	if strings.EqualFold(filepath.Ext(path), ".txt") {
		read = dag.ParseText
	}
	g, err := openAs(path, read)
	if err != nil {
		return nil, err
	}
	g, err = dag.Expand(g)
	return g, asInput(err)
}

// decide makes all decisions: by the plan file for the first graph, else by the policy.
func (w *workload) decide() (err error) {
	if w.Options.Policy, err = schedule.PolicyByName(w.opts.Policy); err != nil {
		return asInput(err)
	}
	if w.opts.Plan != "" {
		if w.Options.Plan, err = loadPlan(w.opts.Plan, w.Program.Graphs[0], w.Platform); err != nil {
			return err
		}
	}
	return w.hintRoom(w.Prepare())
}

// hintRoom says what needs less room than a plan, where that is what is missing.
func (w *workload) hintRoom(err error) error {
	room := (*schedule.RoomError)(nil)
	if !errors.As(err, &room) || w.opts.Plan != "" || room.Memory == w.Platform.Memories[w.Platform.HostMemory()].Name {
		return err
	}
	return fmt.Errorf("%w; take a smaller --batch, or --policy dmdar, which moves parts of what a plan keeps whole", err)
}

// timingCosts reports whether being timed costs something on some device.
func timingCosts(p *platform.Platform) bool {
	return slices.ContainsFunc(p.Devices, func(d platform.Device) bool { return d.Timing > 0 })
}

// variants lists what the costs fix for the main graph, as "device op type
// shape: variant", sorted.
func (w *workload) variants() []string {
	p := &w.Decision.Graphs[0].Problem
	var lines []string
	for t := range p.Graph.Tasks {
		task := &p.Graph.Tasks[t]
		for d := range p.Platform.Devices {
			if c, ok := p.Costs.Of(dag.TaskID(t), platform.DeviceID(d)); ok && c.Variant != "" {
				lines = append(lines, fmt.Sprintf("%s %s %s %s: %s", p.Platform.Devices[d].Name, task.Op, task.Type, task.Shape, c.Variant))
			}
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}
