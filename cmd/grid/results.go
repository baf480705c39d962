package grid

import (
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"dahl/cmd/cli"
	"dahl/rundir/experiment"
)

// printBegin says what is about to run.
func (r *gridRun) printBegin(missing int) {
	fmt.Fprintf(r.progress, "cells     %d: %d have run, %d to run; in %s\n", len(r.cells), len(r.cells)-missing, missing, r.dir.Path())
	of := map[string]bool{}
	for i := range r.cells {
		of[r.cells[i].Name()] = true
	}
	entries, err := os.ReadDir(filepath.Join(r.dir.Path(), CellsDir))
	if err != nil {
		return // there is nothing to be said of it
	}
	left := slices.DeleteFunc(cli.Texts(entries, os.DirEntry.Name), func(name string) bool { return of[name] })
	if len(left) > 0 {
		fmt.Fprintf(r.progress, "left out  %d cells that are not in the experiment any more, such as %s; they stay in %s\n", len(left), left[0], CellsDir)
	}
}

// printCell prints a line of a cell that has run.
func (r *gridRun) printCell(row *experiment.Row, done, of int, left time.Duration) {
	text := "FAILED: " + row.Reason
	if row.Status == experiment.Absent {
		text = "left out: " + row.Reason
	}
	if row.Status == experiment.OK {
		var parts []string
		for _, column := range []experiment.Column{experiment.StepTime, experiment.Rate, experiment.JoulesPerSample, experiment.Accuracy} {
			if v := row.Values[column]; !math.IsNaN(v) {
				parts = append(parts, column.Info().Heading+" "+column.Format(v, v, v))
			}
		}
		text = strings.Join(parts, ", ")
	}
	fmt.Fprintf(r.progress, "%*d/%d  %s: %s; left %s\n", len(fmt.Sprint(of)), done, of, row.Cell.Title(), text, left.Round(time.Second))
}

// print says what came of all cells.
func (r *gridRun) print(out io.Writer) {
	fmt.Fprintf(out, "results   %d of %d cells; %s, %s and %s in %s, figures in %s\n", r.table.Count(experiment.OK), len(r.cells), ResultsFile, TableFile, PageFile, r.dir.Path(), filepath.Join(r.dir.Path(), FiguresDir))
}

// Object is the output of --json.
type Object struct {
	Name   string      `json:"name"`
	Dir    string      `json:"dir"`
	Cells  int         `json:"cells"`
	OK     int         `json:"ok"`
	Failed int         `json:"failed"`
	Build  cli.Build   `json:"build"`
	Rows   []ObjectRow `json:"rows"`
}

// ObjectRow is a cell there.
type ObjectRow struct {
	Run         string             `json:"run"`
	Coordinates map[string]string  `json:"coordinates"`
	Repeat      int                `json:"repeat"`
	Status      experiment.Status  `json:"status"`
	Reason      string             `json:"reason,omitempty"`
	Values      map[string]float64 `json:"values"` // by column, those that are known
	Joules      string             `json:"joules_source,omitempty"`
	Memory      string             `json:"memory_source,omitempty"`
}

func (r *gridRun) object() *Object {
	o := &Object{Name: r.file.Name, Dir: r.dir.Path(), Cells: len(r.cells), OK: r.table.Count(experiment.OK), Failed: r.table.Count(experiment.Failed), Build: r.manifest.Build}
	for i := range r.table.Rows {
		row := &r.table.Rows[i]
		at := ObjectRow{Run: row.Cell.Name(), Coordinates: map[string]string{}, Repeat: row.Cell.Repeat, Status: row.Status, Reason: row.Reason,
			Values: map[string]float64{}, Joules: row.JoulesSource, Memory: row.MemorySource}
		for _, c := range row.Cell.Coordinates {
			at.Coordinates[c.Axis] = c.Label
		}
		for column, v := range row.Values {
			at.Values[experiment.Column(column).String()] = v
		}
		maps.DeleteFunc(at.Values, func(_ string, v float64) bool { return math.IsNaN(v) })
		o.Rows = append(o.Rows, at)
	}
	return o
}
