package train

import (
	"fmt"
	"runtime/debug"
	"slices"

	"dahl/dag"
	"dahl/nn"
	"dahl/nn/data"
	"dahl/plan"
	"dahl/platform"
	"dahl/platform/quantity"
	"dahl/schedule/layout"
	"dahl/train/budget"
)

// AffordPlan refuses graphs whose plan and schedule would take more memory than there is left, before any is made. It also refuses graphs too large
// for all memories of the platform.
func (w *Workload) AffordPlan() error {
	if err := w.holds(); err != nil {
		return err
	}
	needs := w.planNeeds()
	if budget.Check(needs, budget.Available()) == nil {
		return nil
	}
	debug.FreeOSMemory() // what making the graphs left behind
	return asInput(budget.Check(needs, budget.Available()))
}

// holds refuses a program whose parameters and optimiser state have more bytes than all memories of the platform. Any plan has a
// place for each.
func (w *Workload) holds() error {
	var room, kept int64
	for m := range w.Platform.Memories {
		if w.Platform.Memories[m].CapacityBytes == 0 {
			return nil
		}
		room += w.Platform.Memories[m].CapacityBytes
	}
	g := w.Program.Graphs[0]
	for i := range g.Buffers {
		if b := &g.Buffers[i]; b.ViewOf == dag.None && (b.Role == dag.Parameter || b.Role == dag.State) {
			kept += b.Bytes()
		}
	}
	if kept <= room {
		return nil
	}
	return inputErrorf("graph %q needs %s for its parameters and the optimiser's state; all memories of platform %q together have %s", g.Name, quantity.ShortBytes(kept), w.Platform.Name, quantity.ShortBytes(room))
}

// planNeeds lists the memory of planning without the graphs: a schedule of the longest segment, its energy and its figures.
func (w *Workload) planNeeds() []budget.Need {
	spans := 0
	for _, s := range w.Program.Order {
		spans = max(spans, plan.SimulatedSteps(w.Program.Graphs[s.Graph].NumTasks(), s.Steps)*w.Program.Graphs[s.Graph].NumTasks())
	}
	return []budget.Need{
		{Bytes: int64(spans) * planBytes, For: fmt.Sprintf("the plan and the schedule of %d tasks", spans), Lower: "larger tiles, fewer --steps or a smaller graph"},
		{Bytes: fileBytes, For: "files"},
	}
}

// Afford compares the memory that the training needs with the memory left on this machine, before
// any of it is taken. Data that do not fit with the rest are streamed, and the program is lowered
// and decided anew. A training that is too large even so is refused.
func (w *Workload) Afford() error {
	if w.Options.OtherMachine {
		return nil
	}
	if budget.Check(w.needs(), budget.Available()) == nil {
		return nil
	}
	debug.FreeOSMemory() // what planning left behind
	return w.afford(budget.Available())
}

func (w *Workload) afford(left budget.Limit) error {
	err := budget.Check(w.needs(), left)
	if err != nil && !w.Options.Stream && w.Data.Train != nil {
		if err := w.Stream(); err != nil {
			return err
		}
		err = budget.Check(w.needs(), left)
	}
	return asInput(err)
}

// Stream lowers and decides the program anew for data that are read while the training goes on.
func (w *Workload) Stream() error {
	w.Options.Stream = true
	if err := w.Lower(); err != nil {
		return err
	}
	return w.Choose()
}

// streams reports whether data are too large to be planned for in memory: they would take more than
// half of what is left.
func (d *Data) streams(left budget.Limit) bool {
	bytes := int64(0)
	for _, s := range []*data.Dataset{d.Train, d.Test} {
		if s != nil {
			bytes += s.Bytes()
		}
	}
	return bytes > left.Bytes/2
}

// Of what is neither in the arenas nor data, as measured.
const (
	planBytes    = 700      // of a task of a step that is planned: its places in plan, schedule and figures
	recordBytes  = 400      // of a span: as predicted, as noted, in its schedule, and where that is written
	compileBytes = 2048     // of a task
	fileBytes    = 32 << 20 // figures, and files as they are written
)

// The options that lower needs.
const smallerBatch, smallerLimit = "a smaller --batch", "a --limit"

// needs lists the uses of the host's memory by the training, without the memory that planning has taken already.
func (w *Workload) needs() []budget.Need {
	arenas := w.hostArenas()
	kept, order := arenas[layout.NetworkArena], int64(0)
	if w.Options.KeepEvery == 0 && w.Options.ContinueOnNaN {
		kept = 0
	}
	if w.Data.Train != nil {
		order = 4 * int64(w.Samples.Train+w.Samples.Test)
	}
	ahead, spans, tasks := int64(0), int64(0), int64(0)
	for i, g := range w.Program.Graphs {
		steps := 0
		for _, s := range w.Program.Order {
			if s.Graph == i {
				steps = max(steps, s.Steps)
			}
		}
		tasks += int64(g.NumTasks())
		spans = max(spans, min(int64(g.NumTasks())*int64(min(steps, w.RecordedSteps())), maxRecordedSpans))
		if w.Options.Stream {
			ahead = max(ahead, aheadBytes(fedBytes(w.Data.Train, nn.BatchOf(g))))
		}
	}
	return []budget.Need{
		{Bytes: arenas[layout.DataArena], For: "samples and labels", Lower: smallerLimit},
		{Bytes: ahead, For: "samples read ahead", Lower: smallerBatch},
		{Bytes: order, For: "the order of the samples", Lower: smallerLimit},
		{Bytes: w.outputBytes(), For: "the outputs of all samples"},
		{Bytes: arenas[layout.NetworkArena], For: "weights and optimiser state"},
		{Bytes: kept, For: "a copy of these"},
		{Bytes: arenas[layout.StepArena], For: "activations and gradients", Lower: smallerBatch},
		{Bytes: arenas[layout.ScratchArena], For: "workspace of kernels", Lower: "fewer --workers"},
		{Bytes: spans * recordBytes, For: "the record of tasks", Lower: "a smaller --record"},
		{Bytes: tasks * compileBytes, For: "the compiled tasks", Lower: smallerBatch},
		{Bytes: fileBytes, For: "files"},
	}
}

// hostArenas is the size of each arena, of all memories that are part of the host's.
func (w *Workload) hostArenas() (sizes [layout.NumArenas]int64) {
	for m := range w.Platform.Memories {
		if !w.isHere(m) {
			continue
		}
		var most [layout.NumArenas]int64 // the graphs share them
		for i := range w.Decision.Graphs {
			if l := w.Decision.Layouts(i)[m]; l != nil {
				for a, bytes := range l.ArenaBytes {
					most[a] = max(most[a], bytes)
				}
			}
		}
		for a, bytes := range most {
			sizes[a] += bytes
		}
	}
	return sizes
}

// isHere reports whether a memory is part of the host's: its own, or the memory of an emulated
// device.
func (w *Workload) isHere(m int) bool {
	return m == int(w.Platform.HostMemory()) || slices.ContainsFunc(w.Platform.Devices, func(d platform.Device) bool {
		return int(d.Memory) == m && d.IsEmulated()
	})
}

// least refuses a network, before a graph is made of it, if its weights or the values around one
// layer for the batch exceed a limit.
func (w *Workload) least(left budget.Limit) error {
	layer := 0
	for _, s := range w.Model.Stages {
		size := nn.Elems(s.Out)
		for _, in := range s.In {
			size += nn.Elems(in)
		}
		layer = max(layer, size)
	}
	size := w.Options.Type.SizeBytes()
	return asInput(budget.Check([]budget.Need{
		{Bytes: size * int64(w.Model.NumWeights()), For: "weights"},
		{Bytes: size * int64(layer) * int64(w.Options.Batch), For: "the largest layer's input and output", Lower: smallerBatch},
	}, left))
}
