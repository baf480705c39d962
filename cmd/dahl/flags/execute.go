package flags

import (
	"fmt"

	"github.com/spf13/cobra"

	"dahl/cmd/cli"
	"dahl/train"
)

// Execute are the flags of execute that have no influence on the computed numbers. Clocks are among them, so that no
// manifest makes dahl set one.
type Execute struct {
	Out            Output
	Save           string
	SetClocks      bool // the wanted clocks of processors and GPUs
	IgnoreClocks   bool
	CompareDevices bool
	Watch          bool
	Resume         string // directory of a training that goes on
}

// AddExecuteFlags adds the flags of execute.
func AddExecuteFlags(cmd *cobra.Command, o *Options, f *Execute) {
	AddWorkFlags(cmd, o)
	AddTrainFlags(cmd, o)
	Exclude(cmd, "devices", "workers")
	Before(cmd, func() error {
		if f.CompareDevices && !cmd.Flags().Changed("policy") {
			o.Policy = ListPolicy // so that the run on all devices uses them
		}
		return nil
	})
	cli.Must(cmd.Flags().MarkHidden("graph")) // a graph file has no kernels to execute; said when it is given
	cmd.Flags().IntVar(&o.Steps, "steps", 0, "at most `n` training steps per epoch (0: all)")
	cmd.Flags().IntVar(&o.ContinueOnLoss, "continue-on-loss", 0, "when a device fails, plan anew without it and go on from the weights kept after every `n` training steps (1 where no n is given)")
	cmd.Flags().Lookup("continue-on-loss").NoOptDefVal = "1"
	cmd.Flags().BoolVar(&o.ContinueOnNaN, "continue-on-nan", false, "go on when the loss is NaN or infinite")
	cmd.Flags().IntVar(&o.Record, "record", 0, fmt.Sprintf("time the tasks of the first `n` steps of every graph in each epoch (0: of all on processors alone, else of %d)", train.RecordedByDefault))
	cmd.Flags().BoolVar(&f.CompareDevices, "compare-devices", false, "also train for an epoch on each kind of the --devices alone, so that all three are measured; plans by "+ListPolicy+" where no --policy is given")
	cmd.Flags().StringVar(&o.Checkpoint, "checkpoint", "", "save the training `every`=100steps or every=5min, or never (default: every minute, or less often where that takes more than 1 % of the time)")
	cmd.Flags().BoolVar(&f.Watch, "watch", false, "show a page about the training while it runs; a line now and then where there is no terminal")
	cmd.Flags().StringVar(&f.Resume, "resume", "", "go on with the interrupted training in a `directory`")
	AddSaveFlag(cmd, &f.Save)
	cmd.Flags().BoolVar(&f.SetClocks, "set-clocks", false, "set the clocks of processors and GPUs to the frequencies that the platform file says, and give them back at the end (needs root)")
	cmd.Flags().BoolVar(&f.IgnoreClocks, "ignore-clocks", false, "run at whatever clocks processors and GPUs have where others are asked for, and record that")
	Exclude(cmd, "set-clocks", "ignore-clocks")
	AddOutputFlags(cmd, &f.Out, "dahl-execute")
}
