package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/flags"
	"dahl/cmd/dahl/graphs"
	"dahl/cmd/dahl/record"
	"dahl/dag"
	"dahl/execute"
	"dahl/nn"
	"dahl/plan/best"
	"dahl/platform"
	"dahl/rundir"
	"dahl/schedule/place"
	"dahl/schedule/policy"
	"dahl/train"
)

// workload is the network or graph, machine and decisions of a run, with the flags from which it
// was made.
type workload struct {
	train.Workload
	opts *flags.Options

	fullPlatform   *platform.Platform    // before --devices; nil means not kept
	searchPlatform *platform.Platform    // the devices that a search chose from; nil means no search
	search         *searched             // nil means none
	chosenDevices  *record.ChosenDevices // of the policy best; nil means all
	clocks         *record.MachineClocks // of a training; nil means that no clocks were asked for
	inputs         []cli.Identity        // files that the options name, for the manifest
	rescaled       string                // what became of recorded times; empty means that they hold as they are
}

// searched is a search for a plan, and what it has found.
type searched struct {
	space *train.Space
	found *best.Result
}

// newWorkload loads everything the options name and makes the decisions for a run on this
// machine. The model was fitted to the data.
func newWorkload(ctx context.Context, o *flags.Options, m *nn.Model, p *platform.Platform, d train.Data) (*workload, error) {
	runnable, err := execute.Runnable(p)
	if err != nil {
		return nil, cli.AsInput(err)
	}
	w := &workload{opts: o, Workload: train.Workload{Model: m, Data: d, Samples: d.Samples(), Platform: runnable}}
	if err := w.build(); err != nil {
		return nil, err
	}
	if _, err := w.choosePlan(ctx); err != nil {
		return nil, err
	}
	err = w.Afford()
	o.Stream = w.Options.Stream
	return w, err
}

// build makes the program.
func (w *workload) build() (err error) {
	if w.inputs, err = record.HashInputs(w.opts); err != nil {
		return err
	}
	o := w.opts
	if o.Tile > o.Batch {
		return cli.InputErrorf("--tile %d: a step has %d samples; want at most as many", o.Tile, o.Batch)
	}
	if (o.Model == "") == (o.Graph == "") {
		return cli.InputErrorf("name a network with --model or a task graph with --graph")
	}
	if o.Graph != "" {
		g, rescaled, err := graphs.Read(o.Graph, w.Platform)
		if w.rescaled = rescaled; err != nil {
			return cli.AsInput(err)
		}
		w.Program = &dag.Program{Name: g.Name, Graphs: []*dag.Graph{g}, Order: []dag.Segment{{Graph: 0, Steps: max(1, o.Steps)}}}
		w.Options.Variant, w.Options.Seed = o.Variant, o.Seed
		w.Options.Devices, err = o.DeviceList()
		return cli.AsInput(err)
	}
	options, err := o.Training()
	if err != nil {
		return err
	}
	m, err := o.Trained(w.Model)
	if err != nil {
		return err
	}
	w.Model = m
	options.OtherMachine = w.Options.OtherMachine
	w.Options = options
	if err := w.CheckVariant(); err != nil {
		return err
	}
	err = w.Lower()
	if from := cmp.Or(o.Lowering, o.Plan); err != nil && from != "" && from != flags.DefaultTiles {
		err = fmt.Errorf("with the lowering of %s: %w", from, err)
	}
	o.Batch = w.Options.Batch
	return err
}

// choosePlan makes all decisions: by the plan file, for the objective, or by the policy. It returns the result of
// the search for an objective. Nil means that there is no objective.
func (w *workload) choosePlan(ctx context.Context) (*best.Result, error) {
	if err := w.AffordPlan(); err != nil {
		return nil, err
	}
	switch {
	case w.opts.Objective != "" && w.opts.Plan != "":
		return w.chooseClocks(ctx)
	case w.opts.Objective != "":
		return w.optimize(ctx)
	case w.opts.AsksBest():
		return nil, w.chooseDevices(ctx)
	}
	return nil, w.decide()
}

// decide makes all decisions: by the plan file for the first graph, else by the policy on all devices.
func (w *workload) decide() (err error) {
	if w.Options.Policy, err = w.opts.Scheduler(); err != nil {
		return cli.AsInput(err)
	}
	if policy.IsPipeline(w.Options.Policy) && !policy.HasStages(w.Program.Graphs[0]) && w.opts.Plan == "" {
		return cli.InputErrorf("--policy %s: the graph has no stages; write [[stage]] into a file for --lowering, or numbers behind the name, as in 1f1b:4x8", w.opts.Policy)
	}
	if w.opts.Plan != "" {
		if w.Options.Plan, err = rundir.ReadPlan(w.opts.Plan, w.Program.Graphs[0], w.Platform); err != nil {
			return cli.AsInput(err)
		}
	}
	return w.hintRoom(w.Choose())
}

// maxHintedTasks bounds the graphs for which choices are tried, as trials on larger ones take minutes.
const maxHintedTasks = 20_000

// hintRoom adds to an error about missing memory a choice that needs less.
func (w *workload) hintRoom(err error) error {
	room := (*place.RoomError)(nil)
	if !errors.As(err, &room) || w.opts.Plan != "" || w.Program.Graphs[0].NumTasks() > maxHintedTasks {
		return err
	}
	if train.Accelerators(w.Platform) > 1 && w.Options.Policy != policy.DataParallel {
		other := w.Workload
		other.Options.Policy = policy.DataParallel
		if other.Choose() == nil {
			return fmt.Errorf("%w; it fits with --policy %s", err, policy.DataParallel.Doc().Name)
		}
	}
	if layers := w.Recomputable(); layers != nil {
		return fmt.Errorf("%w; it fits with recompute = true for %s in a file for --lowering, as graph --export FILE.toml writes one", err, strings.Join(layers, ", "))
	}
	if room.Memory == w.Platform.Memories[w.Platform.HostMemory()].Name || w.Options.Batch == 1 {
		return err
	}
	return fmt.Errorf("%w; take a smaller --batch", err)
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
