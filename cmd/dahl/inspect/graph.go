package inspect

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"dahl/cmd/cli"
	"dahl/dag"
	"dahl/naming"
	"dahl/nn"
	"dahl/plan"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/layout"
	"dahl/train"
)

// GraphReport is the output of the command graph.
type GraphReport struct {
	Graph    string `json:"graph"`
	SHA256   string `json:"sha256"`
	Platform string `json:"platform,omitempty"`

	// Lowering is the form of the network's layers: "nhwc, fused"; empty for a file.
	// Layouts counts the buffers whose dimensions are in another order than PyTorch's.
	Lowering string         `json:"lowering,omitempty"`
	Layouts  map[string]int `json:"layouts,omitempty"`

	Tasks   int     `json:"tasks"`
	Buffers int     `json:"buffers"`
	Edges   int     `json:"edges"`         // within a step
	Carried int     `json:"carried_edges"` // into the next step
	Levels  int     `json:"levels"`
	Width   int     `json:"width"`
	Flops   float64 `json:"flops"`
	Bytes   int64   `json:"bytes"` // read plus written

	// CriticalS and WorkS are in seconds, each task at its best cost on Platform;
	// 0 without one. CriticalFlops is the path with the most operations.
	CriticalS     float64 `json:"critical_path_s,omitempty"`
	WorkS         float64 `json:"work_s,omitempty"`
	CriticalFlops float64 `json:"critical_path_flops"`
	CriticalTasks int     `json:"critical_path_tasks"`

	ArenaBytes map[string]int64 `json:"arena_bytes"`
	SavedBytes int64            `json:"saved_bytes"`

	Sequences *Sequences `json:"sequences,omitempty"` // of a network of tokens

	Parts []GraphPart `json:"parts"`
}

// Sequences are the numbers of a training step of a network of tokens.
type Sequences struct {
	Weights       int     `json:"weights"`
	Tokens        int     `json:"tokens"` // of a step
	FlopsPerToken float64 `json:"flops_per_token"`
	// KeptBytes are activations that the forward pass leaves to the backward pass.
	KeptBytes int64 `json:"kept_bytes"`
}

// GraphPart is the tasks of one layer and phase.
type GraphPart struct {
	Layer string  `json:"layer"`
	Phase string  `json:"phase"`
	Tasks int     `json:"tasks"`
	Flops float64 `json:"flops"`
	Bytes int64   `json:"bytes"`
	BestS float64 `json:"best_s,omitempty"` // sum of the best costs
	// KeptBytes are activations of the layer that the forward pass leaves to the backward pass, in a network of tokens.
	KeptBytes int64 `json:"kept_bytes,omitempty"`

	Operations []string `json:"operations,omitempty"`
}

// Graph describes the first graph of a workload. Its tasks take time where the workload is for a machine; nil means that it is for none.
func Graph(w *train.Workload, machine *platform.Platform) (*GraphReport, error) {
	costs, places, err := plan.Inspect(w.Program, machine, w.Target())
	if err != nil {
		return nil, cli.AsInput(err)
	}
	g := w.Program.Graphs[0]
	r := &GraphReport{
		Graph: g.Name, SHA256: g.Hash(), Platform: w.Platform.Name, Tasks: g.NumTasks(), Buffers: len(g.Buffers),
		Width: g.Width(), Flops: g.TotalFlops(), Bytes: g.TotalBytes(), Layouts: map[string]int{}, ArenaBytes: map[string]int64{},
	}
	if l := w.Lowering; l != nil {
		r.Lowering = "nhwc, fused"
		if unfused := w.Model.Unfused(l); len(unfused) > 0 {
			r.Lowering += "; by themselves, behind sums that are cut: " + strings.Join(unfused, ", ")
		}
		switch n := nn.MicroBatchesOf(g); {
		case n > 0 && l.Stash:
			r.Lowering += fmt.Sprintf("; %d mini-batches, updates by themselves behind each", n)
		case n > 0:
			r.Lowering += fmt.Sprintf("; %d micro-batches, updates by themselves behind the last", n)
		}
		if n := len(l.Stages); n > 0 {
			r.Lowering += fmt.Sprintf("; %s", naming.Count(n, "stage"))
		}
	}
	for i := range g.Buffers {
		if layout := g.Buffers[i].Layout; layout != "" {
			r.Layouts[layout]++
		}
	}
	for t := range g.Tasks {
		r.Edges += len(g.Preds(dag.TaskID(t)))
		r.Carried += len(g.CarriedPreds(dag.TaskID(t)))
	}
	if levels := g.Levels(); len(levels) > 0 {
		r.Levels = int(slices.Max(levels)) + 1
	}
	best := func(t dag.TaskID) time.Duration { return bestCost(costs, w.Platform, t) }
	r.addPaths(g, best, costs != nil)
	r.addParts(g, best)
	for a := range layout.NumArenas {
		r.ArenaBytes[a.String()] = places.ArenaBytes[a]
	}
	r.SavedBytes = places.SavedBytes
	if m := w.Model; m != nil && m.Vocabulary() > 0 && nn.IsTraining(g) {
		s := &Sequences{Weights: m.NumWeights(), Tokens: nn.BatchOf(g) * nn.Elems(m.Input)}
		s.FlopsPerToken = g.TotalFlops() / float64(s.Tokens)
		kept := nn.KeptBytes(g)
		for i := range r.Parts {
			if p := &r.Parts[i]; p.Phase == "forward" || p.Phase == "load" {
				p.KeptBytes = kept[p.Layer]
				s.KeptBytes += p.KeptBytes
			}
		}
		r.Sequences = s
	}
	return r, nil
}

// Times finds the best cost of each task of the first graph of a workload on its machine, and whether that is on a processor.
func Times(w *train.Workload) (func(dag.TaskID) (time.Duration, bool), error) {
	costs, _, err := plan.Inspect(w.Program, w.Platform, w.Target())
	if err != nil {
		return nil, cli.AsInput(err)
	}
	return func(t dag.TaskID) (time.Duration, bool) {
		best := bestCost(costs, w.Platform, t)
		for d := range w.Platform.Devices {
			if c, ok := costs.Of(t, platform.DeviceID(d)); ok && c.Duration == best {
				return best, w.Platform.Devices[d].IsProcessor()
			}
		}
		return 0, true
	}, nil
}

// bestCost is the shortest duration of a task on any device; 0 where there is none.
func bestCost(costs *schedule.Costs, p *platform.Platform, t dag.TaskID) time.Duration {
	best := time.Duration(-1)
	for d := range p.Devices {
		if c, ok := costs.Of(t, platform.DeviceID(d)); ok && (best < 0 || c.Duration < best) {
			best = c.Duration
		}
	}
	return max(best, 0)
}

// addPaths finds the path with the most operations and, with costs, the longest
// in time; CriticalTasks counts the tasks of the latter.
func (r *GraphReport) addPaths(g *dag.Graph, best func(dag.TaskID) time.Duration, timed bool) {
	// CriticalPath adds integers: operations are counted in whole ones, or in units
	// that keep the sum of all below 2^62.
	unit := max(1, g.TotalFlops()/(1<<61))
	length, path := g.CriticalPath(func(t dag.TaskID) time.Duration { return time.Duration(g.Tasks[t].Flops / unit) })
	r.CriticalFlops, r.CriticalTasks = float64(length)*unit, len(path)
	if !timed {
		return
	}
	length, path = g.CriticalPath(best)
	r.CriticalS, r.CriticalTasks = length.Seconds(), len(path)
	var work time.Duration
	for t := range g.Tasks {
		work += best(dag.TaskID(t))
	}
	r.WorkS = work.Seconds()
}

// addParts groups the tasks by layer and phase, in program order.
func (r *GraphReport) addParts(g *dag.Graph, best func(dag.TaskID) time.Duration) {
	type key struct{ layer, phase string }
	index := map[key]int{}
	for t := range g.Tasks {
		task := &g.Tasks[t]
		k := key{task.Labels.Layer, task.Labels.Phase}
		i, ok := index[k]
		if !ok {
			i = len(r.Parts)
			index[k] = i
			r.Parts = append(r.Parts, GraphPart{Layer: k.layer, Phase: k.phase})
		}
		part := &r.Parts[i]
		part.Tasks++
		part.Flops += task.Flops
		part.Bytes += task.MovedBytes
		part.BestS += best(dag.TaskID(t)).Seconds()
		if task.Op != "" && !slices.Contains(part.Operations, task.Op) {
			part.Operations = append(part.Operations, task.Op)
		}
	}
}

// Print prints it as a table.
func (r *GraphReport) Print(out io.Writer) {
	fmt.Fprintf(out, "graph     %s (%.12s): %s, %s, %s, %s into the next step\n", r.Graph, r.SHA256, naming.Count(r.Tasks, "task"), naming.Count(r.Buffers, "buffer"), naming.Count(r.Edges, "dependence"), naming.Thousands(r.Carried))
	if r.Lowering != "" {
		fmt.Fprintf(out, "lowering  %s", r.Lowering)
		for _, layout := range slices.Sorted(maps.Keys(r.Layouts)) {
			fmt.Fprintf(out, "; %s %s", naming.Count(r.Layouts[layout], "buffer"), layout)
		}
		fmt.Fprintln(out)
	}
	fmt.Fprintf(out, "shape     %s, at most %s on one\n", naming.Count(r.Levels, "level"), naming.Count(r.Width, "task"))
	fmt.Fprintf(out, "work      %s flop, %s read and written\n", cli.ShortCount(r.Flops), cli.ShortBytes(r.Bytes))
	if r.CriticalS > 0 {
		fmt.Fprintf(out, "path      %s critical (%s) of %s work on %s: at most %.1f tasks at a time on average\n",
			cli.ShortTime(cli.Seconds(r.CriticalS)), naming.Count(r.CriticalTasks, "task"), cli.ShortTime(cli.Seconds(r.WorkS)), r.Platform, cli.Ratio(r.WorkS, r.CriticalS))
	} else {
		fmt.Fprintf(out, "path      %s flop critical (%s): at most %.1f tasks at a time on average\n",
			cli.ShortCount(r.CriticalFlops), naming.Count(r.CriticalTasks, "task"), cli.Ratio(r.Flops, r.CriticalFlops))
	}
	if s := r.Sequences; s != nil {
		fmt.Fprintf(out, "tokens    %s a step, of %s flop each, %.2f times the 6 of each of %s; %s of activations kept for the backward pass\n",
			naming.Thousands(s.Tokens), cli.ShortCount(s.FlopsPerToken), cli.Ratio(s.FlopsPerToken, 6*float64(s.Weights)), naming.Count(s.Weights, "weight"), cli.ShortBytes(s.KeptBytes))
	}
	fmt.Fprintf(out, "memory   ")
	for a := range layout.NumArenas {
		fmt.Fprintf(out, " %s %s,", a, cli.ShortBytes(r.ArenaBytes[a.String()]))
	}
	fmt.Fprintf(out, " %s saved by sharing bytes\n\n", cli.ShortBytes(r.SavedBytes))
	wide := 14
	for _, p := range r.Parts {
		wide = max(wide, len(p.Layer))
	}
	kept := func(column string) string { // of networks of tokens alone
		if r.Sequences == nil {
			return ""
		}
		return fmt.Sprintf(" %10s", column)
	}
	fmt.Fprintf(out, "%-*s %-10s %6s %10s %10s%s %10s  %s\n", wide, "layer", "phase", "tasks", "flop", "bytes", kept("kept"), "best time", "operations")
	for _, p := range r.Parts {
		best := "-"
		if r.Platform != "" {
			best = cli.ShortTime(cli.Seconds(p.BestS))
		}
		fmt.Fprintf(out, "%-*s %-10s %6d %10s %10s%s %10s  %s\n", wide,
			cmp.Or(p.Layer, "-"), cmp.Or(p.Phase, "-"), p.Tasks, cli.ShortCount(p.Flops), cli.ShortBytes(p.Bytes), kept(cli.ShortBytes(p.KeptBytes)), best, strings.Join(p.Operations, ", "))
	}
}
