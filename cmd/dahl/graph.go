package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dahl/cmd/cli"
	"dahl/dag"
	"dahl/naming"
	"dahl/nn"
	"dahl/plan"
	"dahl/platform"
	"dahl/rundir/durable"
	"dahl/schedule"
	"dahl/schedule/layout"
)

// graphFlags are the flags of graph beside those that name the graph.
type graphFlags struct {
	list, json bool
	export     string
}

func newGraph([]string) *cobra.Command {
	o := options{Policy: "heft"}
	var f graphFlags
	cmd := &cobra.Command{
		Use:   "graph (--model NAME|FILE | --graph FILE | --list)",
		Short: "show what a training step consists of, or export it",
		Long: `graph shows the task graph of a training step, or one from a file: its tasks,
levels, work, critical path and memory, the layout of its buffers and the
operations of each layer. With --platform the critical path is in time, each task
at its best cost there; without, it counts operations.`,
		Example: `  dahl graph --list
  dahl graph --model lenet5 --batch 64 --platform laptop
  dahl graph --model digits-cnn --export digits.dot
  dahl graph --model lenet5 --batch 64 --export tiles.toml   # to edit, for --lowering`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.list {
				return listModels(cmd.OutOrStdout())
			}
			return inspectGraph(cmd.Context(), cmd.OutOrStdout(), &o, &f)
		},
	}
	addGraphFlags(cmd, &o)
	addDataFlags(cmd, &o)
	addOptimizerFlags(cmd, &o)
	cmd.Flags().BoolVar(&f.list, "list", false, "list the built-in networks")
	cmd.Flags().StringVar(&f.export, "export", "", "write the graph to a `file`: .json, .dot (Graphviz) or .txt; or its lowering: .toml")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON object instead of text")
	exclude(cmd, "list", "model")
	exclude(cmd, "list", "graph")
	return cmd
}

func listModels(out io.Writer) error {
	for _, info := range nn.Models() {
		m := info.New()
		fmt.Fprintf(out, "%-16s %s; %s weights, batch %d\n", info.Name, info.Doc, naming.Thousands(m.NumWeights()), m.Defaults.Batch)
	}
	return nil
}

func inspectGraph(ctx context.Context, stdout io.Writer, o *options, f *graphFlags) error {
	write, err := graphFormat(f.export)
	if err != nil {
		return err
	}
	p := &platform.Platform{}
	if o.Platform != "" {
		if p, err = cli.LoadPlatform(o.Platform); err != nil {
			return err
		}
	}
	w, err := mainGraph(ctx, o, p, p)
	if err != nil {
		return err
	}
	if write != nil {
		if err := cli.CheckWritable(f.export); err != nil {
			return err
		}
		if err := durable.Write(f.export, func(out io.Writer) error { return write(w, out) }); err != nil {
			return err
		}
	}
	r, err := describeGraph(w)
	if err != nil {
		return err
	}
	if f.json {
		return cli.PrintJSON(stdout, r)
	}
	r.print(stdout)
	if write != nil {
		fmt.Fprintf(stdout, "\nwritten   %s\n", f.export)
	}
	return nil
}

// graphFormat chooses how to export by the end of the file's name; nil for no file.
func graphFormat(path string) (func(*workload, io.Writer) error, error) {
	ofGraph := func(write func(*dag.Graph, io.Writer) error) func(*workload, io.Writer) error {
		return func(w *workload, out io.Writer) error { return write(w.Program.Graphs[0], out) }
	}
	write, ok := map[string]func(*workload, io.Writer) error{
		".json": ofGraph((*dag.Graph).WriteJSON), ".dot": ofGraph((*dag.Graph).WriteDOT), ".txt": ofGraph((*dag.Graph).WriteText),
		".toml": func(w *workload, out io.Writer) error {
			if w.Lowering == nil {
				return cli.InputErrorf("--export: a graph from a file has no lowering")
			}
			return nn.WriteLowering(out, *w.Lowering)
		},
	}[strings.ToLower(filepath.Ext(path))]
	if !ok && path != "" {
		return nil, cli.InputErrorf("--export %q: end the name in .json, .dot, .txt or .toml", path)
	}
	return write, nil
}

// graphReport is what graph prints.
type graphReport struct {
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

	Parts []graphPart `json:"parts"`
}

// graphPart is the tasks of one layer and phase.
type graphPart struct {
	Layer string  `json:"layer"`
	Phase string  `json:"phase"`
	Tasks int     `json:"tasks"`
	Flops float64 `json:"flops"`
	Bytes int64   `json:"bytes"`
	BestS float64 `json:"best_s,omitempty"` // sum of the best costs

	Operations []string `json:"operations,omitempty"`
}

func describeGraph(w *workload) (*graphReport, error) {
	machine := w.Platform
	if w.opts.Platform == "" {
		machine = nil
	}
	costs, places, err := plan.Inspect(w.Program, machine, w.Target())
	if err != nil {
		return nil, cli.AsInput(err)
	}
	g := w.Program.Graphs[0]
	r := &graphReport{
		Graph: g.Name, SHA256: g.Hash(), Platform: w.Platform.Name, Tasks: g.NumTasks(), Buffers: len(g.Buffers),
		Width: g.Width(), Flops: g.TotalFlops(), Bytes: g.TotalBytes(), Layouts: map[string]int{}, ArenaBytes: map[string]int64{},
	}
	if l := w.Lowering; l != nil {
		r.Lowering = "nhwc, fused"
		if unfused := w.Model.Unfused(l); len(unfused) > 0 {
			r.Lowering += "; by themselves, behind sums that are cut: " + strings.Join(unfused, ", ")
		}
		if n := nn.MicroBatchesOf(g); n > 0 {
			r.Lowering += fmt.Sprintf("; %d micro-batches, updates by themselves behind the last", n)
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
	return r, nil
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
// in time; the tasks counted are those of the latter.
func (r *graphReport) addPaths(g *dag.Graph, best func(dag.TaskID) time.Duration, timed bool) {
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
func (r *graphReport) addParts(g *dag.Graph, best func(dag.TaskID) time.Duration) {
	type key struct{ layer, phase string }
	index := map[key]int{}
	for t := range g.Tasks {
		task := &g.Tasks[t]
		k := key{task.Labels.Layer, task.Labels.Phase}
		i, ok := index[k]
		if !ok {
			i = len(r.Parts)
			index[k] = i
			r.Parts = append(r.Parts, graphPart{Layer: k.layer, Phase: k.phase})
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

func (r *graphReport) print(out io.Writer) {
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
	fmt.Fprintf(out, "memory   ")
	for a := range layout.NumArenas {
		fmt.Fprintf(out, " %s %s,", a, cli.ShortBytes(r.ArenaBytes[a.String()]))
	}
	fmt.Fprintf(out, " %s saved by sharing bytes\n\n", cli.ShortBytes(r.SavedBytes))
	fmt.Fprintf(out, "%-14s %-10s %6s %10s %10s %10s  %s\n", "layer", "phase", "tasks", "flop", "bytes", "best time", "operations")
	for _, p := range r.Parts {
		best := "-"
		if r.Platform != "" {
			best = cli.ShortTime(cli.Seconds(p.BestS))
		}
		fmt.Fprintf(out, "%-14s %-10s %6d %10s %10s %10s  %s\n",
			cmp.Or(p.Layer, "-"), cmp.Or(p.Phase, "-"), p.Tasks, cli.ShortCount(p.Flops), cli.ShortBytes(p.Bytes), best, strings.Join(p.Operations, ", "))
	}
}
