package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"dahl/dag"
)

// output says where results go.
type output struct {
	dir  string
	json bool
}

func addOutputFlags(cmd *cobra.Command, o *output, dir string) {
	cmd.Flags().StringVar(&o.dir, "out", dir, "`directory` for schedule, energy, figures and manifest")
	cmd.Flags().BoolVar(&o.json, "json", false, "print one JSON object instead of text")
}

func newSimulate(a *app) *cobra.Command {
	var o options
	var out output
	cmd := &cobra.Command{
		Use:   "simulate --platform FILE (--model NAME|FILE | --graph FILE)",
		Short: "predict a training step on a machine described in TOML",
		Long: `simulate replays the task graph of a training step, or one from a file, in a
deterministic discrete-event simulator of the machine. Equal input gives
byte-identical files.`,
		Example: `  dahl simulate --platform laptop --model lenet5 --batch 64 --steps 10
  dahl simulate --platform node.toml --graph cholesky.json --policy dmda --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.simulate(cmd.OutOrStdout(), &o, &out) },
	}
	addWorkFlags(cmd, &o)
	addOptimizerFlags(cmd, &o)
	cmd.Flags().IntVar(&o.Steps, "steps", 10, "consecutive training steps")
	addOutputFlags(cmd, &out, "dahl-simulate")
	return cmd
}

func (a *app) simulate(stdout io.Writer, o *options, out *output) error {
	w, err := simulatedWorkload(o)
	if err != nil {
		return err
	}
	dir, err := createRunDir(out.dir)
	if err != nil {
		return err
	}
	result, err := w.predict()
	if err != nil {
		return asInput(err)
	}
	s := w.summarize(result)
	if err := dir.writeOutcome(w, result, s); err != nil {
		return err
	}
	m := a.newManifest("simulate", w)
	m.Complete = true
	if err := dir.writeManifest(m); err != nil {
		return err
	}
	if out.json {
		return printJSON(stdout, s)
	}
	w.printPrediction(stdout, result, s)
	fmt.Fprintf(stdout, "files     %s\n", dir.path)
	return nil
}

// simulatedWorkload loads what simulate and plan work on: one graph, some steps.
func simulatedWorkload(o *options) (*workload, error) {
	if o.Platform == "" {
		return nil, inputErrorf("name the machine with --platform, such as --platform laptop")
	}
	if o.Steps < 1 {
		return nil, inputErrorf("--steps %d: want at least 1", o.Steps)
	}
	p, err := loadPlatform(o.Platform)
	if err != nil {
		return nil, err
	}
	w, err := newWorkload(o, nil, p, samples{})
	if err != nil {
		return nil, err
	}
	w.program.Order = []dag.Segment{{Graph: 0, Steps: o.Steps}}
	return w, nil
}

// printPrediction prints what a simulated run came to.
func (w *workload) printPrediction(out io.Writer, o *outcome, s *summary) {
	g := w.program.Graphs[0]
	fmt.Fprintf(out, "graph     %s: %d tasks, %.3g GFLOP per step\n", g.Name, g.NumTasks(), g.TotalFlops()/1e9)
	fmt.Fprintf(out, "machine   %s: %d workers, %d memories\n", w.platform.Name, len(w.platform.Workers), len(w.platform.Memories))
	fmt.Fprintf(out, "policy    %s, %d steps\n", s.Policy, s.Steps)
	fmt.Fprintf(out, "time      %s in all, first step %s, then %s per step; no schedule is below %s\n",
		shortTime(o.Run), shortTime(o.Main.FirstStep), shortTime(o.stepTime()), shortTime(seconds(s.LowerBoundS)))
	fmt.Fprintf(out, "energy    %.4g J (%s)\n", o.Joules, o.Basis)
	fmt.Fprintf(out, "memory   ")
	for m := range w.platform.Memories {
		fmt.Fprintf(out, " %s %s", w.platform.Memories[m].Name, shortBytes(o.PeakBytes[m]))
	}
	fmt.Fprintf(out, " at most; %d transfers, %s\n", s.Transfers, shortBytes(s.BytesMoved))
}

func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// newManifest fills what every run knows of itself.
func (a *app) newManifest(command string, w *workload) *manifest {
	m := &manifest{
		Build: thisBuild(), Command: command, Args: argsWithoutOut(a.args), Host: thisHost(),
		Options: *w.opts, Platform: identity{w.platform.Name, w.platform.Hash()}, Lowering: w.lowering,
		Variants: w.variants(),
	}
	if w.model != nil {
		m.Model = w.model.Name
	}
	for _, g := range w.program.Graphs {
		m.Graphs = append(m.Graphs, identity{g.Name, g.Hash()})
	}
	return m
}
