package main

import (
	"cmp"
	"context"
	"fmt"

	"dahl/cmd/cli"
	"dahl/naming"
	"dahl/rundir/experiment"
)

// contestant is a program that trains in the cells of an experiment.
type contestant struct {
	name, sentence string
	// run leaves the run of a cell in a directory. It goes on with one that was interrupted.
	run func(ctx context.Context, r *gridRun, c *experiment.Cell, dir string) error
	// row reads that run. Its status is Missing where the directory does not hold the run of this cell.
	row func(r *gridRun, c *experiment.Cell, dir string) experiment.Row
	// verify runs the cell again and compares. Text is what may differ, such as times.
	verify func(ctx context.Context, dir string) (text string, err error)
}

// contestants is the table of them. The first one trains where an experiment names none.
func contestants() []contestant {
	return []contestant{
		{"dahl", "this program", runDahl, (*gridRun).dahlRow, verifyDahl},
	}
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
