package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"dahl/cmd/cli"
	"dahl/naming"
	"dahl/rundir/experiment"
	"dahl/train/peer"
)

// contestant is a program that trains in the cells of an experiment.
type contestant struct {
	name, sentence string
	// args is the command line of a cell without the directory, as the manifest of its run has it.
	args func(command string, c *experiment.Cell) []string
	// run leaves the run of a cell in a directory. It goes on with one that was interrupted.
	run func(ctx context.Context, r *gridRun, c *experiment.Cell, dir string) error
	// row reads that run. Its status is Missing where the directory does not hold the run of this cell.
	row func(r *gridRun, c *experiment.Cell, dir string) experiment.Row
	// verify runs the cell again and compares. Text is what may differ, such as times.
	verify func(ctx context.Context, dir string) (text string, err error)
}

// contestants is the table of them. The first one trains where an experiment names none.
func contestants() []contestant {
	all := []contestant{{"dahl", "this program", dahlArgs, runDahl, (*gridRun).dahlRow, verifyDahl}}
	for _, p := range peer.Programs() {
		all = append(all, contestant{p.Name, p.Doc, peerArgs, runPeerCell, (*gridRun).dahlRow, verifyDahl})
	}
	return all
}

// dahlArgs leaves out what only other programs read.
func dahlArgs(command string, c *experiment.Cell) []string {
	return append([]string{command}, c.Args(peerKeys...)...)
}

// peerKeys are the keys of cells that are no flags of execute, but of peer.
var peerKeys = []string{"python", "setting"}

// peerFlagSet are the flags of peer.
func peerFlagSet() *pflag.FlagSet {
	cmd := &cobra.Command{Use: peerCommand}
	addPeerFlags(cmd, &options{})
	return cmd.Flags()
}

// peerArgs leaves out what only dahl reads, such as the policy.
func peerArgs(_ string, c *experiment.Cell) []string {
	flags := peerFlagSet()
	var without []string
	for _, s := range c.Settings {
		if f := flags.Lookup(s.Key); f == nil || f.Hidden {
			without = append(without, s.Key)
		}
	}
	return append([]string{peerCommand, c.Setting(experiment.ContestantAxis)}, c.Args(without...)...)
}

// runPeerCell runs a cell as a process of this program, if the other program is installed.
func runPeerCell(ctx context.Context, r *gridRun, c *experiment.Cell, dir string) error {
	python := cmp.Or(c.Setting("python"), defaultPython)
	program, err := peer.ProgramByName(c.Setting(experiment.ContestantAxis))
	cli.Must(err) // the cells were checked
	who := [2]string{program.Name, python}
	known, ok := r.installed[who]
	if !ok {
		if known = peer.Installed(ctx, python, program); ctx.Err() == nil {
			r.installed[who] = known
		}
	}
	if known != nil {
		return known
	}
	return runDahl(ctx, r, c, dir)
}

// checkPeerCell refuses settings of a cell that its contestant has not.
func checkPeerCell(f *experiment.File, c *experiment.Cell) error {
	name := c.Setting(experiment.ContestantAxis)
	p, err := peer.ProgramByName(name)
	if name == "" || err != nil {
		return nil // dahl
	}
	if f.Command != "execute" {
		return fmt.Errorf("contestant %s trains on this machine: write command = \"execute\"", name)
	}
	if s := c.Setting("setting"); s != "" && !p.HasSetting(s) {
		return fmt.Errorf("contestant %s has no setting %q; write %s", name, s, naming.OneOf(p.SettingNames()))
	}
	return nil
}

func contestantByName(name string) (*contestant, error) {
	all := contestants()
	names := cli.Texts(all, func(c contestant) string { return c.name })
	for i := range all {
		if all[i].name == name {
			return &all[i], nil
		}
	}
	return nil, fmt.Errorf("want %s%s", naming.OneOf(names), naming.DidYouMean(name, names))
}

// contestantOf is who runs a cell, whose settings were checked.
func contestantOf(c *experiment.Cell) *contestant {
	by, err := contestantByName(cmp.Or(c.Setting(experiment.ContestantAxis), contestants()[0].name))
	cli.Must(err)
	return by
}
