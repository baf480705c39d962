// Command dahl plans, predicts and measures the training of a network on a
// machine of unlike devices. Each subcommand is one file of this package; the packages outside cmd
// do the work.
package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/graphs"
	"dahl/cmd/dahl/inspect"
	"dahl/cmd/dahl/runs"
	"dahl/cmd/dahl/shell"
	"dahl/cmd/grid"
)

func main() { cli.Main(newRoot) }

// newRoot builds the command tree. Commands that write a manifest keep the command line in it.
func newRoot(args []string) *cobra.Command {
	root := &cobra.Command{
		Use:   "dahl",
		Short: "plan, predict and measure the training of a network on unlike devices",
		Long: `dahl lowers a network to one task graph, predicts its training on a machine
described in TOML, runs it on the real one, and shows the two side by side.

Start with:  dahl demo`,
	}
	for _, sub := range commands {
		root.AddCommand(sub(args))
	}
	if cli.Completing(args) {
		cli.Complete(root, shell.Completions(), shell.Arguments())
	}
	root.PersistentPreRunE = checkPaths
	return root
}

// noArgs refuses arguments. Most of them are values that did not reach their flags.
func noArgs(cmd *cobra.Command, args []string) error {
	err := cli.NoArgs(cmd, args)
	if f := cmd.Flags().Lookup("continue-on-loss"); err != nil && f != nil && f.Changed {
		return fmt.Errorf("%w; its value follows as in --%s=2", err, f.Name)
	}
	return err
}

// commands is the table of subcommands.
var commands = []func([]string) *cobra.Command{
	newDemo,
	newSimulate,
	newPlan,
	newExecute,
	newEvaluate,
	newGenerate,
	newCalibrate,
	runs.NewCompare,
	runs.NewPlot,
	runs.NewTrace,
	runs.NewReport,
	grid.New,
	newPeer,
	newGraph,
	graphs.NewImport,
	inspect.NewKernels,
	func([]string) *cobra.Command { return inspect.NewDoctor(clocksHere, calibrationTime()) },
	func([]string) *cobra.Command { return runs.NewVerify(checkCertificate) },
	newRerun,
	shell.NewCompletion,
	shell.NewMan,
}
