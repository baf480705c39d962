package grid

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"dahl/cmd/cli"
	"dahl/naming"
	"dahl/plots"
	"dahl/plots/paper"
	"dahl/rundir/durable"
	"dahl/rundir/experiment"
)

// Plot draws the figures of an experiment that has run on other pages, and prints their paths. No names mean all.
func Plot(stdout io.Writer, path string, names []string, p paper.Page) error {
	m, err := ReadManifest(path)
	if err != nil {
		return err
	}
	x, err := m.source(path)
	if err != nil {
		return err
	}
	r := &gridRun{source: x, cells: x.file.Cells(), manifest: m}
	r.readRows(path)
	charts := r.table.Charts()
	for _, name := range names {
		if _, err := naming.Find("figure", name, charts, func(c experiment.Chart) string { return c.Name }); err != nil {
			return cli.AsInput(err)
		}
	}
	if r.dir, err = durable.MakeDir(path); err != nil {
		return cli.AsInput(err)
	}
	defer r.dir.Close()
	lock, err := r.dir.Lock(LockFile, "plot")
	if err != nil {
		return cli.InputErrorf("%s: %w; wait for it", path, err)
	}
	defer lock.Unlock()
	if err := r.dir.Mkdir(FiguresDir); err != nil {
		return err
	}
	for _, c := range charts {
		if len(names) > 0 && !slices.Contains(names, c.Name) {
			continue
		}
		switch _, err := r.draw(&c, p); {
		case errors.Is(err, paper.ErrPage):
			return cli.InputErrorf("%s: %w", c.Name, err)
		case err == nil:
			fmt.Fprintln(stdout, filepath.Join(path, figureFile(&c, p)))
		case !errors.Is(err, plots.ErrNoData):
			return err
		}
	}
	return nil
}

// readRows reads what the cells of a directory came to.
func (r *gridRun) readRows(path string) {
	r.table = experiment.Table{File: r.file}
	for i := range r.cells {
		c := &r.cells[i]
		r.table.Rows = append(r.table.Rows, ReadRow(c, r.args(c), r.manifest, filepath.Join(path, CellsDir, c.Name())))
	}
}

func figureFile(c *experiment.Chart, p paper.Page) string {
	return filepath.Join(FiguresDir, c.Name+"."+p.Format)
}

// draw writes a figure into the directory, and returns its bytes.
func (r *gridRun) draw(c *experiment.Chart, p paper.Page) ([]byte, error) {
	var drawn bytes.Buffer
	err := drawChart(&drawn, p, r.file, c)
	if err == nil {
		err = r.dir.Replace(figureFile(c, p), writeText(drawn.String()))
	}
	if err != nil {
		return nil, fmt.Errorf("figure %s: %w", c.Name, err)
	}
	return drawn.Bytes(), nil
}
