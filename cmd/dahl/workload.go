package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
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
)

// workload is what a run works on: the graphs, the machine, what every task
// costs there, and the decisions made beforehand.
type workload struct {
	opts     *options
	executed bool      // on this machine, whose kernels run where the costs name none
	model    *nn.Model // nil for a graph file
	dtype    dag.DType
	lowering *dag.Lowering
	program  *dag.Program
	platform *platform.Platform

	tiles  *plan.TileSearch // what --lowering best found; nil: it was not asked for
	inputs []identity       // files that the options name, for the manifest

	ran []plan.Piece // of a training that has ended: its program; nil: the program is to run

	decision *schedule.Decision
}

// loadPlatform reads a platform file, or one that ships with dahl by its name.
func loadPlatform(name string) (*platform.Platform, error) {
	p, err := platform.Load(name)
	if !errors.Is(err, fs.ErrNotExist) {
		return p, asInput(err)
	}
	short := strings.TrimSuffix(strings.TrimPrefix(name, "platforms/"), ".toml")
	if src, err := platforms.Open(short); err == nil {
		return platform.Parse(src, "platforms/"+short+".toml")
	}
	return nil, inputErrorf("platform %q: no such file, and none of those that ship with dahl: %s%s",
		name, strings.Join(platforms.Names(), ", "), didYouMean(name, platforms.Names()))
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

// samples says what a model's program is trained and evaluated on.
type samples struct {
	train, test int
	divisor     float64
}

// newWorkload loads everything the options name and makes the decisions for a run on
// this machine. A model that was fitted to its data is given; nil stands for the one
// the options name.
func newWorkload(o *options, m *nn.Model, p *platform.Platform, n samples) (*workload, error) {
	runnable, err := execute.Runnable(p)
	if err != nil {
		return nil, asInput(err)
	}
	w := &workload{opts: o, executed: true, model: m, platform: runnable}
	if err := w.buildProgram(n); err != nil {
		return nil, err
	}
	return w, w.decide()
}

func (w *workload) buildProgram(n samples) error {
	o := w.opts
	if (o.Model == "") == (o.Graph == "") {
		return inputErrorf("name a network with --model or a task graph with --graph")
	}
	if o.Graph != "" {
		g, err := loadGraph(o.Graph)
		if err != nil {
			return err
		}
		w.program = &dag.Program{Name: g.Name, Graphs: []*dag.Graph{g}, Order: []dag.Segment{{Graph: 0, Steps: max(1, o.Steps)}}}
		return nil
	}
	var err error
	if w.model == nil {
		if w.model, err = loadModel(o.Model); err != nil {
			return err
		}
	}
	if w.dtype, err = dag.ParseDType(o.DType); err != nil || w.dtype != dag.Float32 && w.dtype != dag.Float64 {
		return inputErrorf("--dtype %q: want float32 or float64", o.DType)
	}
	opt, err := o.optimizer(w.model)
	if err != nil {
		return err
	}
	if err := w.checkVariant(); err != nil {
		return err
	}
	if o.Batch < 0 {
		return inputErrorf("--batch %d: want at least 1", o.Batch)
	}
	if o.Batch == 0 {
		o.Batch = w.model.Defaults.Batch
	}
	if w.lowering, err = o.lowering(w.model, w.platform, w.dtype); err != nil {
		return err
	}
	if n.train == 0 {
		n.train = o.Batch
	}
	w.program, err = nn.NewProgram(w.model, nn.ProgramOptions{
		Batch: o.Batch, TrainSamples: n.train, TestSamples: n.test, Epochs: max(1, o.Epochs),
		Type: w.dtype, Lowering: *w.lowering, Optimizer: opt, Divisor: n.divisor,
	})
	if from := o.loweringFile(); err != nil && from != "" {
		err = fmt.Errorf("with the lowering of %s: %w", from, err)
	}
	return asInput(err)
}

// loweringFile is the file that the lowering comes from; empty: it is derived.
func (o *options) loweringFile() string {
	if o.Lowering == bestTiles {
		return ""
	}
	return cmp.Or(o.Lowering, o.Plan)
}

// checkVariant refuses a name that no kernel has, and one of a library that GPUs are to
// execute here and this machine lacks.
func (w *workload) checkVariant() error {
	err := checkVariant(w.opts.Variant)
	cuda := func(d platform.Device) bool { return d.Kind == "cuda" }
	if err == nil && w.executed && slices.ContainsFunc(w.platform.Devices, cuda) {
		err = asInput(execute.CheckVariant(w.opts.Variant))
	}
	return err
}

// checkVariant refuses a name that no kernel has; kernels without the named variant
// run their fastest.
func checkVariant(name string) error {
	if name == "" {
		return nil
	}
	var all []string
	for _, k := range kernels.Kernels() {
		for _, v := range k.Variants {
			all = append(all, v.Name)
		}
	}
	slices.Sort(all)
	if all = slices.Compact(all); !slices.Contains(all, name) {
		return inputErrorf("--variant %q: no kernel has it; there are %s", name, strings.Join(all, ", "))
	}
	return nil
}

// lowering reads the lowering file, or derives one from the platform's caches; for the
// best tiles, sweepTiles has said how to adapt it.
func (o *options) lowering(m *nn.Model, p *platform.Platform, t dag.DType) (*dag.Lowering, error) {
	if o.Lowering == "" && o.Plan != "" {
		l, err := loweringOfPlan(o.Plan)
		if l != nil || err != nil {
			return l, err
		}
	}
	if o.Lowering == "" || o.Lowering == bestTiles && o.adapt != nil {
		l := grainOf(p).lowering(m, o.Batch, t)
		if o.adapt != nil {
			o.adapt(&l, o.Batch)
		}
		return &l, nil
	}
	if o.Lowering == bestTiles {
		panic("dahl: the best tiles have not been looked for")
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

// grain is what the default granularity of a network depends on: a cache, or a whole
// device and its memory. Bytes are 0 where none are given.
type grain struct {
	device bool
	bytes  int64
}

// grainOf is the second-level cache of the first CPU that runs layers, else of the first
// device that does, or all of it where it is the only one.
func grainOf(p *platform.Platform) grain {
	units, first := 0, (*platform.Device)(nil)
	for i := range p.Devices {
		d := &p.Devices[i]
		switch {
		case d.PlacedOnly:
			continue
		case d.Kind == "cpu":
			return grain{bytes: d.L2Bytes}
		case first == nil:
			first = d
		}
		units += d.Count
	}
	switch {
	case first == nil:
		return grain{}
	case units == 1:
		return grain{device: true, bytes: p.Memories[first.Memory].CapacityBytes}
	default:
		return grain{bytes: first.L2Bytes}
	}
}

// lowering is the default one.
func (g grain) lowering(m *nn.Model, batch int, t dag.DType) dag.Lowering {
	if g.device {
		return nn.WholeLowering(m, batch, g.bytes, t)
	}
	return nn.DefaultLowering(m, batch, int(g.bytes), t)
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

// target says by which kernels the workload can run.
func (w *workload) target() execute.Target {
	return execute.Target{Variant: w.opts.Variant, Here: w.executed}
}

// decide makes all decisions: by the plan file for the first graph, else by the policy.
func (w *workload) decide() (err error) {
	choice := schedule.Choice{Seed: w.opts.Seed}
	if choice.Policy, err = schedule.PolicyByName(w.opts.Policy); err != nil {
		return asInput(err)
	}
	if w.opts.Plan != "" {
		given, err := loadPlan(w.opts.Plan, w.program.Graphs[0], w.platform)
		if err != nil {
			return err
		}
		choice.Plans = []*schedule.Plan{given}
	}
	if w.decision, err = plan.Decide(w.program, w.platform, w.target(), choice); err != nil {
		return asInput(w.hintRoom(err))
	}
	return nil
}

// hintRoom says what needs less room than a plan, where that is what is missing.
func (w *workload) hintRoom(err error) error {
	room := (*schedule.RoomError)(nil)
	if !errors.As(err, &room) || w.opts.Plan != "" || room.Memory == w.platform.Memories[w.platform.HostMemory()].Name {
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
	p := &w.decision.Graphs[0].Problem
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
