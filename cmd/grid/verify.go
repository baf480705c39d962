package grid

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"path"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"dahl/cmd/cli"
	"dahl/rundir"
	"dahl/rundir/experiment"
)

// verifyFlags are the flags of experiment verify.
type verifyFlags struct {
	cells string
	count int
	seed  uint64

	python string
}

func newVerify() *cobra.Command {
	var f verifyFlags
	cmd := &cobra.Command{
		Use:   "verify DIR",
		Short: "repeat cells of an experiment and compare what must come out equal",
		Long: `verify checks that the results of a directory are what its cells say, and then takes cells one
after another: it compares their files with the hashes in their manifests, runs them
again and compares as dahl rerun does. A simulated run must give the same files; an
executed one the same losses, weights, plan and prediction. Times may differ, and are
shown beside. It exits with 1 if something differs that must not. Start it in the
directory where the experiment was started.`,
		Example: `  dahl experiment verify dahl-experiment-schedulers --count 5 --seed 2
  dahl experiment verify results --cells 'batch=16,*'`,
		Args: cli.WantArgs(1, 1, "the directory of an experiment"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return verify(cmd.Context(), cmd.OutOrStdout(), args[0], &f)
		},
	}
	cmd.Flags().StringVar(&f.cells, "cells", "*", "the cells whose names match a `pattern`, in which * stands for any text")
	cmd.Flags().IntVar(&f.count, "count", 0, "`n` of them, drawn at random (0: all)")
	cmd.Flags().Uint64Var(&f.seed, "seed", 1, "`seed` of what is drawn")
	cli.AddPythonFlag(cmd, &f.python, "the contestants that need one")
	return cmd
}

// verify repeats cells of a directory.
func verify(ctx context.Context, out io.Writer, dir string, f *verifyFlags) error {
	if err := cli.CheckNotNegative("count", f.count); err != nil {
		return err
	}
	m, err := ReadManifest(dir)
	if err != nil {
		return err
	}
	x, err := m.source(dir)
	if err != nil {
		return err
	}
	r := &gridRun{source: x, cells: x.file.Cells(), manifest: m}
	chosen, err := r.choose(dir, f)
	if err != nil {
		return err
	}
	wrong := 0
	if err := r.checkResults(dir); err != nil {
		wrong++
		fmt.Fprintf(out, "%s: %v\n", ResultsFile, err)
	} else {
		fmt.Fprintf(out, "%s: what the cells say\n", ResultsFile)
	}
	defer cli.Saving(ctx, "the cell that is repeated is ended")()
	for i, c := range chosen {
		at := filepath.Join(dir, CellsDir, c.Name())
		text, err := contestantOf(c).verify(ctx, at, f.python)
		if ctx.Err() != nil {
			return fmt.Errorf("%d of %d cells were compared: %w", i, len(chosen), ctx.Err())
		}
		verdict := "same"
		if err != nil {
			wrong++
			verdict = "DIFFERENT: " + cli.OneLine(err)
		}
		if text != "" {
			verdict += "; " + text
		}
		fmt.Fprintf(out, "%d/%d  %s: %s\n", i+1, len(chosen), c.Name(), verdict)
	}
	if wrong > 0 {
		return fmt.Errorf("%s: %d of %d checks failed", dir, wrong, len(chosen)+1)
	}
	return nil
}

// choose returns the finished cells whose names match the flags, in the order of the runs.
func (r *gridRun) choose(dir string, f *verifyFlags) (chosen []*experiment.Cell, err error) {
	for i := range r.cells {
		c := &r.cells[i]
		match, err := path.Match(f.cells, c.Name())
		if err != nil {
			return nil, cli.InputErrorf("--cells %q: %w", f.cells, err)
		}
		if row := ReadRow(c, r.args(c), r.manifest, filepath.Join(dir, CellsDir, c.Name())); match && row.Status == experiment.OK {
			chosen = append(chosen, c)
		}
	}
	if len(chosen) == 0 {
		return nil, cli.InputErrorf("--cells %q: no cell of %s that has run has such a name", f.cells, dir)
	}
	if f.count > 0 && f.count < len(chosen) {
		drawn := rand.New(rand.NewPCG(f.seed, 0)).Perm(len(chosen))[:f.count]
		slices.Sort(drawn)
		for i, at := range drawn {
			chosen[i] = chosen[at]
		}
		chosen = chosen[:f.count]
	}
	return chosen, nil
}

// checkResults compares the table of a directory with what its cells say. A cell that failed leaves no
// run behind, so that only the table says why.
func (r *gridRun) checkResults(dir string) error {
	r.readRows(dir)
	var now bytes.Buffer
	if err := r.table.WriteCSV(&now); err != nil {
		return err
	}
	then, err := rundir.ReadAs(filepath.Join(dir, ResultsFile), rundir.All)
	if err != nil {
		return err
	}
	got, want := bytes.Split(then, []byte("\n")), bytes.Split(now.Bytes(), []byte("\n"))
	if len(got) != len(want) || !bytes.Equal(got[0], want[0]) {
		return fmt.Errorf("it is not the table of this experiment")
	}
	for i := range r.table.Rows {
		row := &r.table.Rows[i]
		if row.Status == experiment.OK && !bytes.Equal(got[i+1], want[i+1]) {
			return fmt.Errorf("line %d is not what the run of cell %s says", i+2, row.Cell.Name())
		}
	}
	return nil
}
