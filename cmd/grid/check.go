package grid

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"dahl/cmd/cli"
	"dahl/naming"
	"dahl/nn/files"
	"dahl/platform"
	"dahl/rundir/experiment"
	"dahl/train"
)

// Program is the program whose commands cells are.
type Program struct {
	Commands     []Command
	PeerCommand  string               // that trains by another program
	AddPeerFlags func(*cobra.Command) // its flags

	// Row reads the run of a cell with a command line. Its status is Missing where the directory does not hold that run.
	Row func(c *experiment.Cell, args []string, by *Manifest, dir string) experiment.Row

	Meters func(*platform.Platform) *train.Meters // starts the meters of a training on this machine
	Idle   time.Duration                          // how long they are read while nothing runs
}

// Command is a command of which cells can be.
type Command struct {
	Name     string
	AddFlags func(*cobra.Command) Options // adds the flags that fill the options
}

// Options are the options of a cell, as its flags set them.
type Options interface {
	Check() error // what they name; nothing is planned or run
	Machine() (*platform.Platform, error)
}

// notInCells are flags about output and resuming, which the experiment decides for its cells.
var notInCells = []string{"out", "json", "verbose", "resume", "save", "help", "watch"}

// options parses the flags of a cell as its command does.
func (c *Command) options(args []string) (Options, error) {
	cmd := &cobra.Command{Use: c.Name}
	o := c.AddFlags(cmd)
	if err := cmd.ParseFlags(args); err != nil {
		return nil, err
	}
	if cmd.PreRunE == nil {
		return o, nil
	}
	return o, cmd.PreRunE(cmd, nil)
}

// keys are those that a cell may set: the flags of the command, and the contestant.
func (c *Command) keys() []string {
	cmd := &cobra.Command{Use: c.Name}
	c.AddFlags(cmd)
	keys := []string{experiment.ContestantAxis}
	if c.Name == "execute" {
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
func (p *Program) commandOf(f *experiment.File) (*Command, error) {
	names := cli.Texts(p.Commands, func(c Command) string { return c.Name })
	i := slices.Index(names, f.Command)
	if i < 0 {
		return nil, cli.InputErrorf("%s:%d: command = %q: want %s%s", f.Path, f.CommandLine, f.Command, naming.OneOf(names), naming.DidYouMean(f.Command, names))
	}
	return &p.Commands[i], nil
}

// Check refuses an experiment of which some cell could not begin: keys and values that there are
// not, models, machines and data. Nothing is planned for that.
func (p *Program) Check(f *experiment.File, cells []experiment.Cell) error {
	command, err := p.commandOf(f)
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
				err, known[string(what)] = o.Check(), true
			}
		}
		if err != nil {
			return cli.InputErrorf("%s: cell %s: %w", f.Path, c.Name(), err)
		}
	}
	return nil
}

// checkSetting checks a key and its value by itself.
func checkSetting(command *Command, s experiment.Setting, keys []string) error {
	if !slices.Contains(keys, s.Key) {
		return fmt.Errorf("%s: dahl %s has no such flag for cells; known are %s%s", s.Key, command.Name, naming.OneOf(keys), naming.DidYouMean(s.Key, keys))
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
		if s.Value != "best" { // which is no file
			_, err = files.LoadLowering(s.Value)
		}
	case settingKey: // which is known with the contestant
	default:
		cmd := &cobra.Command{Use: command.Name}
		command.AddFlags(cmd)
		err = cmd.ParseFlags([]string{"--" + s.Key + "=" + s.Value})
	}
	if err != nil {
		return fmt.Errorf("%s = %q: %w", s.Key, s.Value, err)
	}
	return nil
}
