package runs

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

// TraceFormats are the formats of dahl trace and the files they go to.
var TraceFormats = map[string]struct {
	File  string
	Write func(w io.Writer, predicted, run *plots.Run) error // predicted may be nil
}{
	"chrome": {"trace.json", func(w io.Writer, predicted, run *plots.Run) error {
		if predicted == nil {
			return plots.Chrome(w, run)
		}
		return plots.Chrome(w, predicted, run)
	}},
	"paje":   {"trace.paje", func(w io.Writer, _, run *plots.Run) error { return plots.Paje(w, run) }},
	"csv":    {"schedule.csv", writeSchedule},
	"clocks": {"clocks.csv", writeClocks},
}

// TraceFormatNames are the keys of TraceFormats in alphabetical order.
func TraceFormatNames() []string { return slices.Sorted(maps.Keys(TraceFormats)) }

// NewTrace makes the command dahl trace: it writes the schedule of a run in one of TraceFormats, and prints the path of the
// file.
func NewTrace([]string) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "trace DIR",
		Short: "write the schedule of a run for Perfetto, ViTE and others",
		Long: `trace writes the schedule of a run directory into it, as Chrome trace events
(trace.json, opens in Perfetto), in the Pajé format (trace.paje, opens in ViTE) or as a
table (schedule.csv). Of a training the Chrome events have the prediction, too, above
what was measured. The format clocks is a table of the clock of each task of a step
(clocks.csv): stage, instruction and frequency in MHz, device by device in the order in
which a program that sets clocks has to set them.`,
		Args: cli.WantArgs(1, 1, "the directory of a run"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return traceRun(cmd.OutOrStdout(), args[0], format)
		},
	}
	cmd.Flags().StringVar(&format, "format", "chrome", "`format` of the file: "+naming.OneOf(TraceFormatNames()))
	return cmd
}

// traceRun writes the trace of a run directory into it, and prints its path.
func traceRun(stdout io.Writer, path, format string) error {
	if err := cli.CheckName("format", format, TraceFormatNames()); err != nil {
		return err
	}
	f := TraceFormats[format]
	r, err := record.LoadRun(path)
	if err != nil {
		return err
	}
	run, predicted, err := r.Plots()
	if err != nil {
		return err
	}
	err = record.ExtendRun(path, func(d *rundir.Dir) error {
		return d.Write(f.File, func(w io.Writer) error { return f.Write(w, predicted, run) })
	})
	if err == nil {
		fmt.Fprintln(stdout, filepath.Join(path, f.File))
	}
	return err
}
