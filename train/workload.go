package train

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"

	"dahl/dag"
	"dahl/execute"
	"dahl/execute/hardware"
	"dahl/execute/mpi"
	"dahl/kernels"
	"dahl/kernels/calls"
	"dahl/nn"
	"dahl/plan"
	"dahl/plan/tiling"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/policy"
	"dahl/train/budget"
)

// Workload is the subject of a run: the graphs, the machine, and the decisions made
// beforehand. [New] makes one whole; whoever has a graph of his own fills in the fields and
// decides.
type Workload struct {
	Options  Options
	Model    *nn.Model // nil for a graph that no network made
	Data     Data      // of a training; the zero value where only predictions are asked for
	Samples  Samples   // of the data
	Lowering *dag.Lowering
	Program  *dag.Program
	Platform *platform.Platform
	Decision *schedule.Decision

	folded *platform.Platform // by the lowering; nil means that it is whole
	ran    []plan.Piece       // the program of a training that has ended; nil means that it is to run
}

// New fits a network to its data, lowers it for a machine, and makes all decisions. A
// platform that is not elsewhere is this machine: its devices have to be here.
func New(m *nn.Model, d Data, p *platform.Platform, o Options) (*Workload, error) {
	p, err := Within(p, o.Precision, o.Variant)
	if err != nil {
		return nil, err
	}
	if !o.OtherMachine {
		if p, err = execute.Runnable(p); err != nil {
			return nil, asInput(err)
		}
	}
	w, err := lowered(m, d, p, o)
	if err != nil {
		return nil, err
	}
	if err := w.Choose(); err != nil {
		return nil, err
	}
	return w, w.Afford()
}

// lowered is a workload before anything is decided.
func lowered(m *nn.Model, d Data, p *platform.Platform, o Options) (*Workload, error) {
	fitted, err := Fit(m, d.Train)
	if err != nil {
		return nil, err
	}
	o.Batch = cmp.Or(o.Batch, min(m.Defaults.Batch, d.Train.Len()))
	if o.Batch > d.Train.Len() {
		return nil, inputErrorf("batch %d: there are %d training samples in %s; want at most as many", o.Batch, d.Train.Len(), d.Train.Name)
	}
	w := &Workload{Options: o, Model: fitted, Data: d, Samples: d.Samples(), Platform: p}
	if err := w.CheckVariant(); err != nil {
		return nil, err
	}
	return w, w.Lower()
}

// Lower makes the program of the model for the samples.
func (w *Workload) Lower() (err error) {
	o := &w.Options
	o.Batch, o.Epochs, o.Type = cmp.Or(o.Batch, w.Model.Defaults.Batch), max(1, o.Epochs), cmp.Or(o.Type, dag.Float32)
	o.Stream = o.Stream || w.Samples.OnlyRead
	if !o.OtherMachine {
		left := budget.Available()
		if err := w.least(left); err != nil {
			return err
		}
		if place, launched := mpi.Launched(); launched {
			left.Bytes /= int64(place.LocalSize) // each rank of the machine would hold the data
		}
		o.Stream = o.Stream || w.Data.streams(left)
	}
	w.Data = w.Data.as(o.Type.Arithmetic())
	if w.Lowering = o.Lowering; w.Lowering == nil {
		l := DefaultLowering(w.Model, w.Platform, o.Batch, o.Type)
		if o.Tiles != (tiling.Tiling{}) {
			t, err := w.Tilings()
			if err == nil {
				l, err = t.Lowering(o.Tiles)
			}
			if err != nil {
				return asInput(err)
			}
		}
		w.Lowering = &l
	}
	if o.Strategy != nil {
		l, err := o.Strategy.Split.Lowering(w.network(*w.Lowering))
		if err != nil {
			return asInput(fmt.Errorf("%s: %w", o.Strategy.Doc().Name, err))
		}
		w.Lowering = &l
	}
	if err := w.checkStages(); err != nil {
		return asInput(err)
	}
	if err := w.fold(); err != nil {
		return asInput(err)
	}
	w.Program, err = nn.NewProgram(w.Model, w.programOptions())
	return asInput(err)
}

// fold lets devices of the platform stand for all that a folded lowering has equal ones of. Nobody runs such a lowering.
func (w *Workload) fold() (err error) {
	f := w.Lowering.Fold
	if f.Tensor == 0 {
		return nil
	}
	if !w.Options.OtherMachine {
		return fmt.Errorf("the lowering has one of %d equal devices, and is simulated alone; take tensor-parallel, data-parallel and 1f1b to execute it", f.Devices())
	}
	var firsts []string
	for _, s := range w.Lowering.Stages {
		if !slices.Contains(firsts, s.Device) {
			firsts = append(firsts, s.Device)
		}
	}
	if w.folded == nil {
		if w.folded, err = w.Platform.Fold(firsts, f.Devices()); err == nil {
			w.Platform = w.folded
		}
	}
	return err
}

func (w *Workload) programOptions() nn.ProgramOptions {
	o, n := &w.Options, w.Samples
	if n.Type == dag.Float32 || n.Type == dag.Float64 {
		n.Type = o.Type.Arithmetic()
	}
	trained := cmp.Or(n.Train, o.Batch)
	if o.Evaluate {
		trained = 0
	}
	return nn.ProgramOptions{
		Batch: o.Batch, TrainSamples: trained, TestSamples: n.Test, Epochs: o.Epochs,
		Type: o.Type, Lowering: *w.Lowering, Optimizer: o.Optimizer, SampleType: n.Type, Divisor: n.Divisor, Stream: o.Stream, HostOf: w.hostOf, Outputs: o.Evaluate,
	}
}

// hostOf names a processor of the node of a device, or of a unit of one. It is empty where the node is the caller's, and where the node has none.
func (w *Workload) hostOf(name string) string {
	p := w.Platform
	i := slices.IndexFunc(p.Workers, func(u platform.Worker) bool { return u.Name == name || p.Devices[u.Device].Name == name })
	if i < 0 {
		return ""
	}
	node := p.NodeOf(p.Devices[p.Workers[i].Device].Memory)
	on := slices.IndexFunc(p.Devices, func(d platform.Device) bool { return d.IsProcessor() && p.NodeOf(d.Memory) == node })
	if on < 0 || node == p.NodeOf(p.HostMemory()) {
		return ""
	}
	return p.Devices[on].Name
}

// DumpLowering lowers the workload once more and writes the state of each graph after a pass as text.
func (w *Workload) DumpLowering(out io.Writer, pass string) (err error) {
	if w.Model == nil {
		return inputErrorf("a graph file has no lowering; dump a pass of the decision")
	}
	options := w.programOptions()
	options.After = func(now string, l *nn.Lowered) {
		if now == pass && err == nil {
			err = l.Dump(out)
		}
	}
	_, lowerErr := nn.NewProgram(w.Model, options)
	return cmp.Or(err, lowerErr)
}

// CheckVariant refuses a name without a kernel, and the name of a library that GPUs of
// this machine are to execute but do not have.
func (w *Workload) CheckVariant() error {
	name := w.Options.Variant
	if name == "" {
		return nil
	}
	if err := kernels.CheckVariant(name); err != nil {
		return inputErrorf("variant %w", err)
	}
	if w.Options.OtherMachine || !HasVariant(w.Platform, name) {
		return nil
	}
	return asInput(hardware.CheckVariant(name))
}

// HasVariant reports whether some kernel has a variant for a device of a platform; any has the variant "".
func HasVariant(p *platform.Platform, name string) bool {
	return name == "" || slices.ContainsFunc(kernels.Kernels(), func(k kernels.Kernel) bool {
		v, ok := k.Variant(name)
		return ok && slices.ContainsFunc(p.Devices, func(d platform.Device) bool { return !d.PlacedOnly && v.RunsOn(d.Code()) })
	})
}

// Choose makes all decisions: by the plan for the first graph, else by the policy.
func (w *Workload) Choose() (err error) {
	choice := schedule.Choice{Policy: w.Options.Policy, Seed: w.Options.Seed}
	switch {
	case choice.Policy != nil:
	case w.Lowering != nil && w.Lowering.Order != "":
		if choice.Policy, err = policy.PipelineByName(w.Lowering.Order); err != nil {
			return asInput(err)
		}
	default:
		choice.Policy = policy.HEFT
	}
	if w.Options.Plan != nil {
		choice.Plans = []*schedule.Plan{w.Options.Plan}
	}
	w.Decision, err = plan.Decide(w.Program, w.Platform, w.Target(), choice)
	return asInput(err)
}

// Target says by which kernels the workload can run.
func (w *Workload) Target() hardware.Target {
	t := hardware.Target{Variant: w.Options.Variant, ThisMachine: !w.Options.OtherMachine}
	if w.Model != nil {
		t.Kernels = w.Model.Kernels()
	}
	return t
}

// Predict simulates the program as it will run.
func (w *Workload) Predict(ctx context.Context) (*plan.Totals, error) {
	return plan.Predict(ctx, w.Decision, w.pieces(), !w.Options.OtherMachine)
}

// RecordedByDefault is how many steps of every graph are recorded in an epoch where some
// device is no processor: enough for a steady step, few against an epoch.
const RecordedByDefault = 10

// RecordedSteps is how many steps of every graph are recorded in an epoch.
func (w *Workload) RecordedSteps() int {
	switch {
	case w.Options.Record > 0:
		return w.Options.Record
	case w.Platform.Spread():
		return RecordedByDefault
	default:
		return math.MaxInt
	}
}

// pieces are the segments of the program as they are predicted. An execution is predicted as
// it will run: the first steps of every graph in an epoch as recorded ones, and the others
// without a record.
func (w *Workload) pieces() (pieces []plan.Piece) {
	if w.ran != nil {
		return w.ran
	}
	perEpoch := max(1, len(w.epochOrder()))
	recorded := make([]int, len(w.Program.Graphs))
	for i, seg := range w.Program.Order {
		if i%perEpoch == 0 {
			clear(recorded)
		}
		n := seg.Steps
		if !w.Options.OtherMachine {
			n = min(n, max(0, w.RecordedSteps()-recorded[seg.Graph]))
		}
		recorded[seg.Graph] += n
		samples := w.counted(w.Program.Graphs[seg.Graph])
		for _, p := range []plan.Piece{{Segment: dag.Segment{Graph: seg.Graph, Steps: n}, Recorded: true, Samples: samples}, {Segment: dag.Segment{Graph: seg.Graph, Steps: seg.Steps - n}, Samples: samples}} {
			if p.Steps > 0 {
				pieces = append(pieces, p)
			}
		}
	}
	plan.FirstOf(pieces)
	return pieces
}

// TrainedOn is the number of samples that a step trains on. Zero means an evaluation, or a graph that no model made.
func TrainedOn(g *dag.Graph) int {
	if nn.IsTraining(g) {
		return nn.BatchOf(g)
	}
	return 0
}

// counted is the number of samples of a step that counts for the speed of the run.
func (w *Workload) counted(g *dag.Graph) int {
	if w.Options.Evaluate {
		return nn.BatchOf(g)
	}
	n := TrainedOn(g)
	if w.Lowering != nil {
		n *= max(1, w.Lowering.Fold.Data) // all rows of a fold, of which the graph has one
	}
	return n
}

// epochOrder is the order of one epoch; all of them are alike.
func (w *Workload) epochOrder() []dag.Segment {
	return w.Program.Order[:len(w.Program.Order)/max(1, w.Options.Epochs)]
}

// only is the workload with some pieces as its program.
func (w *Workload) only(done []plan.Piece) *Workload {
	part := *w
	part.Program = &dag.Program{Name: w.Program.Name, Graphs: w.Program.Graphs}
	for _, p := range done {
		part.Program.Order = append(part.Program.Order, p.Segment)
	}
	part.ran = done
	return &part
}

// DefaultLowering is the granularity of a network on a platform. Where a processor runs layers, tiles fit its second-level
// cache, and are finer on more than [nn.FewCores] cores. Else they fit the cache of the first device, or are whole layers on a
// single unit.
func DefaultLowering(m *nn.Model, p *platform.Platform, batch int, t dag.DType) dag.Lowering {
	g := grainOf(p)
	if g.device {
		return nn.WholeLowering(m, batch, g.bytes, t)
	}
	if g.fine {
		return nn.FineLowering(m, batch, int(g.bytes), t)
	}
	return nn.DefaultLowering(m, batch, int(g.bytes), t)
}

// Tilings are the ways to cut the network on the platform. The tile of the busiest layer stands for all.
func (w *Workload) Tilings() (*tiling.Network, error) {
	extents, err := w.Model.Extents(w.Options.Batch, !w.Options.Evaluate)
	if err != nil {
		return nil, err
	}
	all := tilingsOf(w.Model, w.Platform, w.Options.Batch, w.Options.Type, extents)
	if all.Layer == "" {
		return nil, inputErrorf("model %s has no layer with weights, whose tiles could be chosen", w.Model.Name)
	}
	return all, nil
}

// tilingsOf is [Workload.Tilings] where the extents are known.
func tilingsOf(m *nn.Model, p *platform.Platform, batch int, t dag.DType, extents map[string]dag.LayerLowering) *tiling.Network {
	return &tiling.Network{Layer: m.BusiestLayer(), Default: DefaultLowering(m, p, batch, t), Batch: batch, Extents: extents,
		MostParts: Accelerators(p), Recomputable: m.Recomputable(), JoinsLoss: m.JoinsLoss(), OfBatch: func(n int) dag.Lowering { return nn.PartsLowering(m, batch, n, t) }}
}

// Accelerators counts the devices with a memory of their own.
func Accelerators(p *platform.Platform) (n int) {
	for _, d := range p.Usable() {
		if !d.IsProcessor() && d.Memory != p.HostMemory() {
			n++
		}
	}
	return n
}

// grain decides the default granularity of a network: a cache and whether there are many cores, or a whole device
// and its memory. Bytes are 0 where none are given.
type grain struct {
	device, fine bool
	bytes        int64
}

func grainOf(p *platform.Platform) grain {
	units, cores := 0, 0
	var first, processor *platform.Device
	for i := range p.Devices {
		d := &p.Devices[i]
		switch {
		case d.PlacedOnly:
			continue
		case d.IsProcessor():
			processor = cmp.Or(processor, d)
			cores += cmp.Or(d.Whole, d.Count)
			continue
		case first == nil:
			first = d
		}
		units += d.Count
	}
	switch {
	case processor != nil:
		return grain{fine: cores > nn.FewCores, bytes: processor.L2Bytes}
	case first == nil:
		return grain{}
	case units == 1:
		return grain{device: true, bytes: p.Memories[first.Memory].CapacityBytes}
	default:
		return grain{bytes: first.L2Bytes}
	}
}

// Within is a platform without the models of variants whose products round more than a
// precision of package kernels allows, so that none is chosen for being fast. Empty means
// the finest precision. A variant that is asked for by name stays.
func Within(p *platform.Platform, precision, variant string) (*platform.Platform, error) {
	precision = cmp.Or(precision, calls.FullPrecision)
	if !slices.Contains(calls.Precisions(), precision) {
		return nil, inputErrorf("precision %q: want one of %v", precision, calls.Precisions())
	}
	allowed := slices.DeleteFunc(slices.Clone(p.Models), func(m platform.Model) bool {
		k, err := kernels.KernelByName(m.Op)
		if err != nil || m.Variant == variant {
			return false
		}
		v, ok := k.Variant(m.Variant)
		return ok && !v.Within(precision)
	})
	if len(allowed) == len(p.Models) {
		return p, nil
	}
	q := *p
	q.Models = allowed
	return &q, asInput(q.Complete())
}
