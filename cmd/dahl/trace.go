package main

import (
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/record"
	"dahl/naming"
	"dahl/plots"
	"dahl/rundir"
)

// traceFormats are the formats of dahl trace and the files they go to.
var traceFormats = map[string]struct {
	file  string
	write func(w io.Writer, predicted, run *plots.Run) error // predicted may be nil
}{
	"chrome": {"trace.json", func(w io.Writer, predicted, run *plots.Run) error {
		if predicted == nil {
			return plots.Chrome(w, run)
		}
		return plots.Chrome(w, predicted, run)
	}},
	"paje": {"trace.paje", func(w io.Writer, _, run *plots.Run) error { return plots.Paje(w, run) }},
}

func traceFormatNames() []string { return slices.Sorted(maps.Keys(traceFormats)) }

func newTrace([]string) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "trace DIR",
		Short: "write the schedule of a run for Perfetto or ViTE",
		Long: `trace writes the schedule of a run directory into it, as Chrome trace events
(trace.json, opens in Perfetto) or in the Pajé format (trace.paje, opens in ViTE). Of
a training the Chrome events have the prediction, too, above what was measured.`,
		Args: cli.WantArgs(1, 1, "the directory of a run"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return traceRun(cmd.OutOrStdout(), args[0], format)
		},
	}
	cmd.Flags().StringVar(&format, "format", "chrome", "`format` of the file: "+naming.OneOf(traceFormatNames()))
	return cmd
}

// traceRun writes the trace of a run directory into it, and prints its path.
func traceRun(stdout io.Writer, path, format string) error {
	if err := cli.CheckName("format", format, traceFormatNames()); err != nil {
		return err
	}
	f := traceFormats[format]
	r, err := record.LoadRun(path)
	if err != nil {
		return err
	}
	run, err := record.NewPlotRun(r.Problem, r.Schedule, r.Summary)
	if err != nil {
		return err
	}
	var before *plots.Run
	predicted, err := r.Predicted()
	if err == nil && predicted != nil {
		before, err = record.NewPlotRun(r.Problem, predicted, r.Summary)
	}
	if err != nil {
		return err
	}
	err = record.ExtendRun(path, func(d *rundir.Dir) error {
		return d.Write(f.file, func(w io.Writer) error { return f.write(w, before, run) })
	})
	if err == nil {
		fmt.Fprintln(stdout, filepath.Join(path, f.file))
	}
	return err
}
