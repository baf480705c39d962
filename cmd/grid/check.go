package grid

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/flags"
	"dahl/cmd/dahl/record"
	"dahl/naming"
	"dahl/nn"
	"dahl/nn/files"
	"dahl/rundir/experiment"
)

// command is a command of which cells can be.
type command struct {
	name     string
	addFlags func(*cobra.Command, *flags.Options)
	check    func(*flags.Options) error // what the options name; nothing is planned or run
}

// commands is the table of them.
var commands = []command{
	{"simulate", func(cmd *cobra.Command, o *flags.Options) {
		flags.AddSimulateFlags(cmd, o, &flags.Output{}, "")
		flags.AddSamplesFlag(cmd, o)
	}, checkSimulation},
	{"plan", func(cmd *cobra.Command, o *flags.Options) {
		flags.AddSimulateFlags(cmd, o, &flags.Output{}, "")
		flags.AddObjectiveFlags(cmd, o)
	}, checkSimulation},
	{"execute", func(cmd *cobra.Command, o *flags.Options) { flags.AddExecuteFlags(cmd, o, &flags.Execute{}) }, checkTraining},
}

// notInCells are flags about output and resuming, which the experiment decides for its cells.
var notInCells = []string{"out", "json", "verbose", "resume", "save", "help", "watch"}

// options parses the flags of a cell as its command does.
func (c *command) options(args []string) (*flags.Options, error) {
	cmd, o := &cobra.Command{Use: c.name}, &flags.Options{}
	c.addFlags(cmd, o)
	if err := cmd.ParseFlags(args); err != nil {
		return nil, err
	}
	if cmd.PreRunE == nil {
		return o, nil
	}
	return o, cmd.PreRunE(cmd, nil)
}

// keys are those that a cell may set: the flags of the command, and the contestant.
func (c *command) keys() []string {
	cmd := &cobra.Command{Use: c.name}
	c.addFlags(cmd, &flags.Options{})
	keys := []string{experiment.ContestantAxis}
	if c.name == "execute" {
		keys = append(keys, settingKey)
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !slices.Contains(notInCells, f.Name) && !f.Hidden {
			keys = append(keys, f.Name)
		}
	})
	slices.Sort(keys)
	return keys
}

// commandOf finds the command of an experiment.
func commandOf(f *experiment.File) (*command, error) {
	names := cli.Texts(commands, func(c command) string { return c.name })
	i := slices.Index(names, f.Command)
	if i < 0 {
		return nil, cli.InputErrorf("%s:%d: command = %q: want %s%s", f.Path, f.CommandLine, f.Command, naming.OneOf(names), naming.DidYouMean(f.Command, names))
	}
	return &commands[i], nil
}

// Check refuses an experiment of which some cell could not begin: keys and values that there are
// not, models, machines and data. Nothing is planned for that.
func Check(f *experiment.File, cells []experiment.Cell) error {
	command, err := commandOf(f)
	if err != nil {
		return err
	}
	checked, keys := map[experiment.Setting]bool{}, command.keys()
	known := map[string]bool{} // options that were checked
	for i := range cells {
		c := &cells[i]
		for _, s := range c.Settings {
			if checked[s] {
				continue
			}
			if err := checkSetting(command, s, keys); err != nil {
				return cli.InputErrorf("%s:%d: %w", f.Path, s.Line, err)
			}
			checked[s] = true
		}
		if err := checkPeerCell(f, c); err != nil {
			return cli.InputErrorf("%s: cell %s: %w", f.Path, c.Name(), err)
		}
		o, err := command.options(c.Args(settingKey))
		if err == nil {
			what, jsonErr := json.Marshal(o)
			if cli.Must(jsonErr); !known[string(what)] {
				err, known[string(what)] = command.check(o), true
			}
		}
		if err != nil {
			return cli.InputErrorf("%s: cell %s: %w", f.Path, c.Name(), err)
		}
	}
	return nil
}

// checkSetting checks a key and its value by itself.
func checkSetting(command *command, s experiment.Setting, keys []string) error {
	if !slices.Contains(keys, s.Key) {
		return fmt.Errorf("%s: dahl %s has no such flag for cells; known are %s%s", s.Key, command.name, naming.OneOf(keys), naming.DidYouMean(s.Key, keys))
	}
	var err error
	switch s.Key {
	case experiment.ContestantAxis:
		_, err = contestantByName(s.Value)
	case "model":
		_, err = cli.LoadModel(s.Value)
	case "platform":
		_, err = cli.LoadPlatform(s.Value)
	case "lowering":
		if s.Value != flags.DefaultTiles {
			_, err = files.LoadLowering(s.Value)
		}
	case settingKey: // which is known with the contestant
	default:
		cmd := &cobra.Command{Use: command.name}
		command.addFlags(cmd, &flags.Options{})
		err = cmd.ParseFlags([]string{"--" + s.Key + "=" + s.Value})
	}
	if err != nil {
		return fmt.Errorf("%s = %q: %w", s.Key, s.Value, err)
	}
	return nil
}

// checkSimulation checks what simulate and plan read.
func checkSimulation(o *flags.Options) error {
	_, _, err := o.Machine()
	if err == nil && o.Model != "" {
		var m *nn.Model
		if m, _, err = flags.FittedModel(o); err == nil {
			_, err = o.Trained(m)
		}
	}
	if err == nil {
		_, err = record.HashInputs(o)
	}
	return err
}

// checkTraining checks what execute reads.
func checkTraining(o *flags.Options) error {
	m, _, err := flags.TrainingData(o)
	if err == nil {
		_, err = o.Trained(m)
	}
	if err == nil {
		_, err = flags.ThisMachine(o)
	}
	if err == nil {
		_, err = record.HashInputs(o)
	}
	return err
}
