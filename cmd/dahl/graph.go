package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/flags"
	"dahl/cmd/dahl/graphs"
	"dahl/cmd/dahl/inspect"
	"dahl/naming"
	"dahl/nn/models"
	"dahl/platform"
	"dahl/rundir/durable"
)

// graphFlags are the flags of graph that do not choose the graph.
type graphFlags struct {
	list, json bool
	export     string
}

func newGraph([]string) *cobra.Command {
	o := flags.Options{Policy: flags.ListPolicy}
	var f graphFlags
	cmd := &cobra.Command{
		Use:   "graph (--model NAME|FILE | --graph FILE | --list)",
		Short: "show what a training step consists of, or export it",
		Long: `graph shows the task graph of a training step, of a step of --inference, or one from a file: its tasks,
levels, work, critical path and memory, the layout of its buffers and the
operations of each layer. With --platform the critical path is in time, each task
at its best cost there; without, it counts operations. In the formats of others a task
takes this best cost, or without --platform the time that the graph itself has.`,
		Example: `  dahl graph --list
  dahl graph --model lenet5 --batch 64 --platform laptop
  dahl graph --model digits-cnn --export digits.dot
  dahl graph --model lenet5 --batch 64 --export tiles.toml   # to edit, for --lowering
  dahl graph --model lenet5 --platform server --export lenet5.wf.json   # for other simulators
  dahl graph --model lenet5 --platform server --export server.xml`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.list {
				return listModels(cmd.OutOrStdout())
			}
			return inspectGraph(cmd.Context(), cmd.OutOrStdout(), &o, &f)
		},
	}
	flags.AddGraphFlags(cmd, &o)
	flags.AddDataFlags(cmd, &o)
	flags.AddOptimizerFlags(cmd, &o)
	flags.AddInferenceFlag(cmd, &o)
	cmd.Flags().BoolVar(&f.list, "list", false, "list the built-in networks")
	cmd.Flags().StringVar(&f.export, "export", "", "write the graph to a `file`: .json, .dot (Graphviz), .simgrid.dot, .wf.json (WfCommons), .rec (StarPU) or .txt; its lowering: .toml; or its machine: .xml (SimGrid)")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON object instead of text")
	flags.Exclude(cmd, "list", "model")
	flags.Exclude(cmd, "list", "graph")
	return cmd
}

func listModels(out io.Writer) error {
	for _, info := range models.All() {
		m := info.New()
		fmt.Fprintf(out, "%-16s %s; %s weights, batch %d\n", info.Name, info.Doc, naming.Thousands(m.NumWeights()), m.Defaults.Batch)
	}
	return nil
}

func inspectGraph(ctx context.Context, stdout io.Writer, o *flags.Options, f *graphFlags) error {
	write, err := graphs.ExportTo(f.export)
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
		if err := durable.Write(f.export, func(out io.Writer) error { return write(&w.Workload, out) }); err != nil {
			return err
		}
	}
	machine := w.Platform
	if o.Platform == "" {
		machine = nil
	}
	r, err := inspect.Graph(&w.Workload, machine)
	if err != nil {
		return err
	}
	if f.json {
		return cli.PrintJSON(stdout, r)
	}
	r.Print(stdout)
	if write != nil {
		fmt.Fprintf(stdout, "\nwritten   %s\n", f.export)
	}
	return nil
}
