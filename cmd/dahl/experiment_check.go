package main

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"dahl/cmd/cli"
	"dahl/naming"
	"dahl/nn"
	"dahl/rundir/experiment"
)

// cellCommand is a command of which cells can be.
type cellCommand struct {
	name     string
	addFlags func(*cobra.Command, *options)
	check    func(*options) error // what the options name; nothing is planned or run
}

// cellCommands is the table of them.
func cellCommands() []cellCommand {
	return []cellCommand{
		{"simulate", func(cmd *cobra.Command, o *options) {
			addSimulateFlags(cmd, o, &output{}, "")
			addSamplesFlag(cmd, o)
		}, checkSimulation},
		{"plan", func(cmd *cobra.Command, o *options) {
			addSimulateFlags(cmd, o, &output{}, "")
			addObjectiveFlags(cmd, o)
		}, checkSimulation},
		{"execute", func(cmd *cobra.Command, o *options) { addExecuteFlags(cmd, o, &executeFlags{}) }, checkTraining},
	}
}

// notInCells are flags that say where results go or what goes on, which the experiment decides.
var notInCells = []string{"out", "json", "verbose", "resume", "save", "help", "watch"}

// cellOptions are the options of a cell, as its command reads them.
func (c *cellCommand) cellOptions(args []string) (*options, error) {
	o := &options{}
	cmd := &cobra.Command{Use: c.name}
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
func (c *cellCommand) keys() []string {
	cmd := &cobra.Command{Use: c.name}
	c.addFlags(cmd, &options{})
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
func commandOf(f *experiment.File) (*cellCommand, error) {
	all := cellCommands()
	names := cli.Texts(all, func(c cellCommand) string { return c.name })
	i := slices.Index(names, f.Command)
	if i < 0 {
		return nil, cli.InputErrorf("%s:%d: command = %q: want %s%s", f.Path, f.CommandLine, f.Command, naming.OneOf(names), naming.DidYouMean(f.Command, names))
	}
	return &all[i], nil
}

// checkCells refuses an experiment of which some cell could not begin: keys and values that there are
// not, models, machines and data. Nothing is planned for that.
func checkCells(f *experiment.File, cells []experiment.Cell) error {
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
		o, err := command.cellOptions(c.Args(settingKey))
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
func checkSetting(command *cellCommand, s experiment.Setting, keys []string) error {
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
		if s.Value != bestTiles {
			_, err = nn.LoadLowering(s.Value)
		}
	case settingKey: // which is known with the contestant
	default:
		cmd := &cobra.Command{Use: command.name}
		command.addFlags(cmd, &options{})
		err = cmd.ParseFlags([]string{"--" + s.Key + "=" + s.Value})
	}
	if err != nil {
		return fmt.Errorf("%s = %q: %w", s.Key, s.Value, err)
	}
	return nil
}

// checkSimulation checks what simulate and plan read.
func checkSimulation(o *options) error {
	p, err := cli.LoadPlatform(o.Platform)
	if err == nil {
		_, err = o.selected(p)
	}
	if err == nil && o.Model != "" {
		var m *nn.Model
		if m, _, err = fittedModel(o); err == nil {
			_, err = o.trained(m)
		}
	}
	if err == nil {
		_, err = hashInputs(o)
	}
	return err
}

// checkTraining checks what execute reads.
func checkTraining(o *options) error {
	m, _, err := trainingData(o)
	if err == nil {
		_, err = o.trained(m)
	}
	if err == nil {
		_, err = thisMachine(o)
	}
	if err == nil {
		_, err = hashInputs(o)
	}
	return err
}
