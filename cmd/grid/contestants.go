package grid

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/flags"
	"dahl/cmd/dahl/record"
	"dahl/naming"
	"dahl/rundir/experiment"
	"dahl/train/peer"
)

// contestant is a program that trains in the cells of an experiment.
type contestant struct {
	name, sentence string
	// args is the command line of a cell without the directory, as the manifest of its run has it.
	args func(r *gridRun, c *experiment.Cell) []string
	// run leaves the run of a cell in a directory. It goes on with one that was interrupted.
	run func(ctx context.Context, r *gridRun, c *experiment.Cell, dir string) error
	// verify runs the cell again, where it needs an interpreter by that one, and compares. The text has
	// values that may differ, such as times.
	verify func(ctx context.Context, dir, python string) (text string, err error)
}

// contestants is the table of them. The first one trains where an experiment names none.
func contestants() []contestant {
	all := []contestant{{"dahl", "this program", dahlArgs, runDahl, verifyDahl}}
	for _, p := range peer.Programs() {
		all = append(all, contestant{p.Name, p.Doc, peerArgs, runPeerCell, verifyDahl})
	}
	return all
}

// dahlArgs leaves out what only other programs read.
func dahlArgs(r *gridRun, c *experiment.Cell) []string {
	return append([]string{r.file.Command}, c.Args(settingKey)...)
}

// settingKey is the key of cells that is no flag of execute, but of peer.
const settingKey = "setting"

// peerArgs leaves out what only dahl reads, such as the policy.
func peerArgs(r *gridRun, c *experiment.Cell) []string {
	cmd := &cobra.Command{Use: record.PeerCommand}
	flags.AddPeerFlags(cmd, &flags.Options{})
	var without []string
	for _, s := range c.Settings {
		if f := cmd.Flags().Lookup(s.Key); f == nil || f.Hidden {
			without = append(without, s.Key)
		}
	}
	return append([]string{record.PeerCommand, c.Setting(experiment.ContestantAxis), "--python=" + r.manifest.Python}, c.Args(without...)...)
}

// runPeerCell runs a cell as a process of this program, if the other program is installed.
func runPeerCell(ctx context.Context, r *gridRun, c *experiment.Cell, dir string) error {
	program, err := peer.ProgramByName(c.Setting(experiment.ContestantAxis))
	cli.Must(err) // the cells were checked
	known, ok := r.installed[program.Name]
	if !ok {
		if known = peer.Installed(ctx, r.manifest.Python, program); ctx.Err() == nil {
			r.installed[program.Name] = known
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
	if s := c.Setting(settingKey); s != "" && !p.HasSetting(s) {
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

// contestantOf returns the contestant that runs a cell. Its settings were checked.
func contestantOf(c *experiment.Cell) *contestant {
	by, err := contestantByName(cmp.Or(c.Setting(experiment.ContestantAxis), contestants()[0].name))
	cli.Must(err)
	return by
}
