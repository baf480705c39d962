package main

import (
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"dahl/cmd/dahl/flags"
	"dahl/naming"
	"dahl/nn"
	"dahl/schedule"
)

// dump is a pass of making a plan, and how its result is printed.
type dump struct {
	pass  string
	print func(w *workload, out io.Writer) error
}

// dumps lists the passes in the order in which they run.
func dumps() (all []dump) {
	for _, pass := range nn.Passes() {
		all = append(all, dump{pass, func(w *workload, out io.Writer) error { return w.DumpLowering(out, pass) }})
	}
	for _, pass := range schedule.Passes() {
		all = append(all, dump{pass, func(w *workload, out io.Writer) error { return w.Decision.Dump(out, pass) }})
	}
	return all
}

func dumpNames() (names []string) {
	for _, d := range dumps() {
		names = append(names, d.pass)
	}
	return names
}

// addDumpFlag adds --dump.
func addDumpFlag(cmd *cobra.Command, out *flags.Output) {
	cmd.Flags().Func("dump", "print the state after a `pass` in place of the run, and keep no files: "+strings.Join(dumpNames(), ", "), func(pass string) error {
		if !slices.Contains(dumpNames(), pass) {
			return naming.Unknown("pass", pass, dumpNames())
		}
		out.Dump = pass
		return nil
	})
	flags.Exclude(cmd, "dump", "json")
	flags.Exclude(cmd, "dump", "out")
}

// dump prints the state after a pass.
func (w *workload) dump(out io.Writer, pass string) error {
	all := dumps()
	return all[slices.IndexFunc(all, func(d dump) bool { return d.pass == pass })].print(w, out)
}
