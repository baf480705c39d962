package grid

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dahl/cmd/cli"
	"dahl/naming"
	"dahl/plots"
	"dahl/plots/paper"
	"dahl/rundir/durable"
	"dahl/rundir/experiment"
	"dahl/rundir/tables"
	"dahl/train/peer"
)

// runFlags are the flags of experiment run.
type runFlags struct {
	dir           string
	small, json   bool
	allowModified bool
	data          []string
	python        string
}

func newRun() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run FILE|NAME",
		Short: "run the cells of an experiment that have not run yet",
		Long: `run reads a TOML file, or an experiment that ships with dahl by its name, and runs a cell for
every combination of its values. A cell is a process of its own and a run directory in
DIR/cells, as dahl simulate, plan or execute leaves it. All cells are checked before
the first one runs: keys, values, models, machines, data.

  name = "mine"
  [run]                          # flags of all cells
  command = "execute"            # simulate, plan or execute
  repeats = 5                    # all cells once, then again
  epochs = 2
  [grid]                         # a flag, and its values
  model = ["mlp", "lenet5"]
  batch = [16, 64]
  workers = [1, 2]
                                 # files by a pattern: graph = ["graphs/*.stg"]
  [[case]]                       # values that change together are an axis, too
  name = "digits"
  data = "digits"
  [small]                        # what --small has otherwise
  batch = [16]
  [[figure]]                     # default: what fits the axes
  kind = "bars"                  # bars, curves, speedup, front or heat
  x = "batch"
  by = "model"
  y = "images_per_s"             # a column of results.csv

contestant = ["dahl", "pytorch", "jax"] trains each cell by all of them.
--python names the interpreter that has them, which no file can; setting = "best" tries their
settings first, as dahl peer does. What only dahl has, such as a policy, is not theirs. A
contestant that is not installed is said to be, and the others go on.

The same command goes on after any interruption, kill -9 included: cells whose runs are
complete and have the same command line stay as they are, a training of which a checkpoint is kept
goes on, and others begin again. That is so for a changed file, too. Cells whose process failed
run again; a loss that is not finite is a result. Results of two versions of the program do
not mix: another one refuses the directory.

It writes results.csv with a line for each cell, results.md with medians over
repetitions and seeds, figures, results.html, a page with table and figures, and
experiment.json, which names program, machine and file. The brackets in
results.md and the bars in figures are order statistics: they hold the median with
the probability that stands below the table, however the values are distributed.

File names in an experiment are as on the command line of a cell: from the directory in
which dahl was started.

` + tablesHelp(),
		Example: `  dahl experiment run schedulers --small
  dahl experiment run mine.toml --out results --data fashion=data/fashion-mnist`,
		Args: cli.WantArgs(1, 1, "an experiment: a file, or the name of one that ships with dahl"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), args[0], &f)
		},
	}
	cmd.Flags().StringVar(&f.dir, "out", "", "`directory` for cells, tables and figures (default: dahl-experiment-NAME)")
	cmd.Flags().BoolVar(&f.small, "small", false, "the small version: what [small] in the file says")
	cmd.Flags().StringArrayVar(&f.data, "data", nil, "take other data in a case: `case=DATA` (repeat it for several cases)")
	cli.AddPythonFlag(cmd, &f.python, "the contestants that need one")
	cmd.Flags().BoolVar(&f.allowModified, "allow-modified", false, "run also with a program that was built from modified sources, which nobody can build again")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON object instead of text")
	return cmd
}

// tablesHelp lists the columns, the kinds of figures and the contestants for the help.
func tablesHelp() string {
	var b strings.Builder
	b.WriteString("The columns of results.csv, beside the coordinates, the repetition and what the numbers rest on:\n")
	for _, c := range experiment.Columns() {
		fmt.Fprintf(&b, "  %-22s %s\n", c.Name, c.Sentence)
	}
	b.WriteString("\nThe kinds of figures:\n")
	for _, k := range experiment.Kinds() {
		fmt.Fprintf(&b, "  %-22s %s\n", k.Kind, k.Sentence)
	}
	b.WriteString("\nThe key contestant names who trains:\n")
	for _, c := range contestants() {
		fmt.Fprintf(&b, "  %-22s %s\n", c.name, c.sentence)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// gridRun is an experiment that runs.
type gridRun struct {
	*source
	cells    []experiment.Cell
	dir      *durable.Dir
	manifest *Manifest
	table    experiment.Table
	progress io.Writer
	bar      *cli.ProgressBar
	// installed are contestants that were asked for their version, by name: nil, or why they gave none.
	installed map[string]error
}

// run runs what has not run yet and writes all results.
func run(ctx context.Context, stdout, stderr io.Writer, name string, f *runFlags) error {
	x, err := open(name, f.small, f.data)
	if err != nil {
		return err
	}
	r := &gridRun{source: x, cells: x.file.Cells(), progress: stdout, bar: cli.NewProgressBar(stderr, "cells"), installed: map[string]error{}}
	if f.json {
		r.progress = io.Discard
	}
	if err := cmp.Or(refuseModified(cli.ThisBuild(), f.allowModified), Check(r.file, r.cells)); err != nil {
		return err
	}
	path := cmp.Or(f.dir, "dahl-experiment-"+r.file.Name)
	defer cli.Saving(ctx, "the cell that runs is ended, and the results so far are written")()
	lock, err := r.open(ctx, path, f)
	if err != nil {
		return err
	}
	defer r.dir.Close()
	defer lock.Unlock()
	runErr := r.runCells(ctx)
	if err := r.write(); err != nil {
		return errors.Join(runErr, err)
	}
	if f.json {
		if err := cli.PrintJSON(stdout, r.object()); err != nil {
			return err
		}
	} else {
		r.print(stdout)
	}
	if failed := r.table.Count(experiment.Failed); runErr == nil && failed > 0 {
		runErr = fmt.Errorf("%d of %d cells failed; %s in %s says why", failed, len(r.cells), ResultsFile, path)
	}
	return runErr
}

// refuseModified refuses a program whose sources nobody can find again.
func refuseModified(b cli.Build, allowed bool) error {
	if !b.Dirty || allowed {
		return nil
	}
	return cli.InputErrorf("this program was built from commit %s with modified sources, so nobody could repeat its results: commit them and build again, or give --allow-modified", b.Commit)
}

// open makes or takes over the directory and writes what runs.
func (r *gridRun) open(ctx context.Context, path string, f *runFlags) (lock *durable.File, err error) {
	earlier, err := earlier(path)
	if err != nil {
		return nil, err
	}
	if r.dir, err = durable.MakeDir(path); err != nil {
		return nil, cli.AsInput(err)
	}
	lock, err = r.dir.Lock(LockFile, fmt.Sprintf("process %d", os.Getpid()))
	if err != nil {
		r.dir.Close()
		return nil, cli.InputErrorf("%s: %w; wait for it, or name another directory with --out", path, err)
	}
	r.manifest = &Manifest{Format: headFormat, Build: cli.ThisBuild(),
		Host: cli.ThisHost(),
		File: cli.Identity{Name: r.name, SHA256: fmt.Sprintf("%x", sha256.Sum256(r.text))}, Small: f.small, Data: f.data, Python: f.python}
	here, err := cli.Machine("", "", false)
	if err == nil {
		r.manifest.CPU = here.Name
	}
	if err == nil && earlier != nil {
		err = r.goesOn(path, earlier)
	}
	if err == nil && r.manifest.Idle == nil {
		r.manifest.Idle, err = r.measureIdle(ctx)
	}
	if err == nil {
		err = r.begin()
	}
	if err != nil {
		lock.Unlock()
		r.dir.Close()
	}
	return lock, err
}

// begin writes what runs. The manifest is first, by which the directory can be told. Temporary files of a
// killed process are removed.
func (r *gridRun) begin() error {
	entries, err := os.ReadDir(r.dir.Path())
	for _, e := range entries {
		for _, name := range []string{HeadFile, CopyFile, ResultsFile, TableFile} {
			if strings.HasPrefix(e.Name(), "."+name+"-") {
				err = cmp.Or(err, r.dir.Remove(e.Name()))
			}
		}
	}
	if err != nil {
		return err
	}
	err = r.dir.Replace(HeadFile, func(w io.Writer) error { return cli.PrintJSON(w, r.manifest) })
	if err == nil {
		err = r.dir.Replace(CopyFile, writeText(string(r.text)))
	}
	if err == nil {
		err = r.dir.Mkdir(CellsDir)
	}
	return err
}

// earlier returns the manifest of the experiment that ran in a directory before. Nil means that
// none did.
func earlier(path string) (*Manifest, error) {
	entries, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, cli.InputErrorf("output directory: %w", err)
	}
	others := slices.DeleteFunc(entries, func(e fs.DirEntry) bool { // what was cut off before there was a manifest
		return e.Name() == LockFile || strings.HasPrefix(e.Name(), "."+HeadFile)
	})
	if len(others) == 0 {
		return nil, nil
	}
	m, err := ReadManifest(path)
	if err != nil {
		return nil, cli.InputErrorf("output directory %s is not empty and not that of an experiment; name another with --out", path)
	}
	return m, nil
}

// goesOn refuses a directory with results of another program or machine, and keeps the idle powers
// measured before.
func (r *gridRun) goesOn(path string, earlier *Manifest) error {
	now := r.manifest
	switch {
	case earlier.Build != now.Build:
		return cli.InputErrorf("the results in %s are of dahl %s, commit %s, and this is %s, commit %s: go on with that one, or name another directory with --out",
			path, earlier.Build.Version, earlier.Build.Commit, now.Build.Version, now.Build.Commit)
	case earlier.CPU != now.CPU || earlier.Host != now.Host:
		return cli.InputErrorf("the results in %s are of another machine (%s, %d cores): go on there, or name another directory with --out", path, earlier.CPU, earlier.Host.CPUs)
	case earlier.File.SHA256 != now.File.SHA256 || earlier.Small != now.Small || earlier.Python != now.Python || !slices.Equal(earlier.Data, now.Data):
		fmt.Fprintf(r.progress, "changed   the experiment; cells that are in it as they were stay\n")
	}
	now.Idle = earlier.Idle
	return nil
}

// runCells runs the cells that have not run. The table has all that ran, also after an error.
func (r *gridRun) runCells(ctx context.Context) error {
	r.table = experiment.Table{File: r.file}
	var missing []int
	for i := range r.cells {
		row := r.row(&r.cells[i])
		if r.table.Rows = append(r.table.Rows, row); row.Status == experiment.Missing {
			missing = append(missing, i)
		}
	}
	r.printBegin(len(missing))
	begun := time.Now()
	for done, i := range missing {
		c := &r.cells[i]
		r.bar.Set(done, len(missing), c.Name())
		err := contestantOf(c).run(ctx, r, c, r.cellDir(c))
		r.bar.Done()
		if ctx.Err() != nil {
			return fmt.Errorf("%d of %d cells have run; the same command goes on: %w", len(r.cells)-len(missing)+done, len(r.cells), ctx.Err())
		}
		row := r.row(c)
		if err != nil && row.Status == experiment.Missing {
			status := experiment.Failed
			if absent := (*peer.MissingError)(nil); errors.As(err, &absent) {
				status = experiment.Absent
			}
			row = experiment.NewRow(c, status, cli.OneLine(err))
		}
		r.table.Rows[i] = row
		left := time.Duration(float64(time.Since(begun)) / float64(done+1) * float64(len(missing)-done-1))
		r.printCell(&row, done+1, len(missing), left)
		if err := r.dir.Replace(ResultsFile, r.table.WriteCSV); err != nil {
			return err
		}
	}
	return nil
}

// cellDir is the run directory of a cell.
func (r *gridRun) cellDir(c *experiment.Cell) string {
	return filepath.Join(r.dir.Path(), CellsDir, c.Name())
}

// row reads what a cell came to.
func (r *gridRun) row(c *experiment.Cell) experiment.Row {
	return ReadRow(c, r.args(c), r.manifest, r.cellDir(c))
}

// write writes tables and figures.
func (r *gridRun) write() error {
	if err := r.dir.Replace(ResultsFile, r.table.WriteCSV); err != nil {
		return err
	}
	if err := r.dir.Replace(TableFile, r.writeTable); err != nil {
		return err
	}
	if err := cmp.Or(r.dir.RemoveAll(FiguresDir), r.dir.Mkdir(FiguresDir)); err != nil {
		return err
	}
	var figures [][]byte
	for _, c := range r.table.Charts() {
		switch figure, err := r.draw(&c, paper.Page{Format: "svg"}); {
		case err == nil:
			figures = append(figures, figure)
		case !errors.Is(err, plots.ErrNoData):
			return err
		}
	}
	return r.dir.Replace(PageFile, func(w io.Writer) error { return r.writePage(w, figures) })
}

// writeTable writes results.md: the table, and what made it.
func (r *gridRun) writeTable(w io.Writer) error {
	if err := r.table.WriteMarkdown(w); err != nil {
		return err
	}
	m := r.manifest
	modified := ""
	if m.Build.Dirty {
		modified = " with modified sources"
	}
	_, err := fmt.Fprintf(w, "\ndahl %s, commit %s%s; %s, %s, %s/%s. Experiment %s, sha256 %.12s.\n", m.Build.Version, m.Build.Commit, modified, tables.Markdown(m.CPU), naming.Count(m.Host.CPUs, "core"), m.Host.OS, m.Host.Arch, tables.Markdown(m.File.Name), m.File.SHA256)
	return err
}
