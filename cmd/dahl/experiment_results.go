package main

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
	"dahl/energy"
	"dahl/platform"
	"dahl/rundir"
	"dahl/rundir/experiment"
)

// dahlRow reads the run of a cell.
func (r *gridRun) dahlRow(c *experiment.Cell, dir string) experiment.Row {
	missing := experiment.NewRow(c, experiment.Missing, "")
	m := new(manifest)
	if err := rundir.Open(dir, m); err != nil || !m.Complete && !m.ended() || !slices.Equal(m.Args, r.args(c)) {
		return missing
	}
	if m.ended() {
		return experiment.NewRow(c, experiment.Failed, m.Diverged.What())
	}
	summaryPath, platformPath := filepath.Join(dir, summaryFile), filepath.Join(dir, rundir.PlatformFile)
	if changed, err := rundir.Changed(dir, m); err != nil || slices.Contains(changed, summaryPath) || slices.Contains(changed, platformPath) {
		return missing
	}
	s, err := readJSON[summary](summaryPath)
	if err != nil {
		return missing
	}
	p, err := platform.Load(platformPath)
	if err != nil {
		return missing
	}
	row := experiment.NewRow(c, experiment.OK, "")
	if m.Build != r.manifest.Build {
		row.Reason = fmt.Sprintf("made by commit %s", m.Build.Commit)
	}
	fillTimes(&row, s)
	r.fillJoules(&row, s, p)
	fillUse(&row, s, p)
	if s.Trained != nil && s.Trained.ResumedAfterStep > 0 {
		row.Reason = fmt.Sprintf("it went on after step %d; times are of the rest, and there are no joules of all of it", s.Trained.ResumedAfterStep)
		for _, column := range []experiment.Column{experiment.Joules, experiment.JoulesPerEpoch, experiment.JoulesAboveIdle, experiment.JoulesError} {
			row.Set(column, math.NaN())
		}
	}
	return row
}

// fillTimes sets times, losses and accuracies.
func fillTimes(row *experiment.Row, s *summary) {
	if s.StepS > 0 {
		row.Set(experiment.StepTime, s.StepS)
	}
	row.Set(experiment.RunTime, s.MakespanS)
	if s.ImagesPerS != nil {
		row.Set(experiment.Rate, *s.ImagesPerS)
	}
	if s.TrainingLoss != nil {
		row.Set(experiment.Loss, float64(*s.TrainingLoss))
	}
	if s.TestAccuracy != nil {
		row.Set(experiment.Accuracy, 100**s.TestAccuracy)
	}
	if s.Trained != nil && s.Trained.PredictedStepS > 0 {
		row.Set(experiment.PredictedStep, s.Trained.PredictedStepS)
	}
}

// fillJoules sets the joules and says what they rest on: on meters where they cover all devices, else
// on the powers of the platform file.
func (r *gridRun) fillJoules(row *experiment.Row, s *summary, p *platform.Platform) {
	e := &s.EnergyJ
	measured := covers(e.Readings, p)
	if row.JoulesSource = e.Grounds; !measured && e.Basis == energy.Unavailable {
		return
	}
	joules := e.Total
	if measured {
		joules = r.fillMetered(row, e.Readings)
	}
	row.Set(experiment.Joules, joules)
	if s.Trained != nil {
		row.Set(experiment.JoulesPerEpoch, joules/float64(s.Trained.Epochs))
	}
	if e.PerImage > 0 {
		row.Set(experiment.JoulesPerImage, e.PerImage)
		if s.Trained == nil && s.EpochImages > 0 {
			row.Set(experiment.JoulesPerEpoch, e.PerImage*float64(s.EpochImages))
		}
	}
}

// fillMetered sets what only meters know, and returns the joules that all of them counted.
func (r *gridRun) fillMetered(row *experiment.Row, readings []energy.Reading) (joules float64) {
	var by []string
	unsure, idle := 0.0, 0.0 // idle is NaN where some meter was not read while nothing ran
	for _, of := range readings {
		by = append(by, of.Of+" by "+of.Meter)
		joules, unsure = joules+of.Joules, unsure+of.ErrorJoules
		idle += r.manifest.idleWatts(&of) * of.Seconds
	}
	row.JoulesSource = "measured: " + strings.Join(by, ", ")
	row.Set(experiment.JoulesError, unsure)
	row.Set(experiment.JoulesAboveIdle, joules-idle)
	return joules
}

// fillUse sets how busy the machine was, and the memory.
func fillUse(row *experiment.Row, s *summary, p *platform.Platform) {
	processors, others := share{}, share{}
	for i := range p.Devices {
		d := &p.Devices[i]
		if d.PlacedOnly {
			continue
		}
		if of := &others; d.IsProcessor() {
			processors.add(s.Busy[d.Name], d.Count)
		} else {
			of.add(s.Busy[d.Name], d.Count)
		}
	}
	row.Set(experiment.GPUShare, others.percent())
	if s.Trained == nil {
		row.Set(experiment.CPUShare, processors.percent())
		planned := int64(0)
		for m, live := range s.LivePeakBytes {
			planned += max(live, s.ReservedBytes[m])
		}
		row.Set(experiment.PeakMemory, float64(planned))
		row.MemorySource = "planned, of all memories"
		return
	}
	if l := s.Load; l != nil && l.OwnCores > 0 && processors.units > 0 {
		row.Set(experiment.CPUShare, 100*l.OwnCores/float64(min(processors.units, l.Cores)))
		row.Set(experiment.OtherCores, l.OtherCores)
	}
	if s.Trained.PeakBytes > 0 {
		row.Set(experiment.PeakMemory, float64(s.Trained.PeakBytes))
		row.MemorySource = "largest resident set of the process"
	}
}

// share is how busy some units are together.
type share struct {
	busy  float64
	units int
}

func (s *share) add(busy float64, units int) {
	s.busy, s.units = s.busy+busy*float64(units), s.units+units
}

// percent is NaN where there are no units.
func (s *share) percent() float64 { return 100 * s.busy / float64(s.units) }

// printBegin says what is about to run.
func (r *gridRun) printBegin(missing int) {
	fmt.Fprintf(r.progress, "cells     %d: %d have run, %d to run; in %s\n", len(r.cells), len(r.cells)-missing, missing, r.dir.Path())
	of := map[string]bool{}
	for i := range r.cells {
		of[r.cells[i].Name()] = true
	}
	entries, err := os.ReadDir(filepath.Join(r.dir.Path(), cellsDir))
	if err != nil {
		return // there is nothing to be said of it
	}
	left := slices.DeleteFunc(cli.Texts(entries, os.DirEntry.Name), func(name string) bool { return of[name] })
	if len(left) > 0 {
		fmt.Fprintf(r.progress, "left out  %d cells that are not in the experiment any more, such as %s; they stay in %s\n", len(left), left[0], cellsDir)
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
		for _, column := range []experiment.Column{experiment.StepTime, experiment.Rate, experiment.JoulesPerImage, experiment.Accuracy} {
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
	fmt.Fprintf(out, "results   %d of %d cells; %s and %s in %s, figures in %s\n", r.table.Count(experiment.OK), len(r.cells), resultsCSV, resultsTable, r.dir.Path(), filepath.Join(r.dir.Path(), figuresDir))
}

// experimentObject is what --json prints.
type experimentObject struct {
	Name   string          `json:"name"`
	Dir    string          `json:"dir"`
	Cells  int             `json:"cells"`
	OK     int             `json:"ok"`
	Failed int             `json:"failed"`
	Build  cli.Build       `json:"build"`
	Rows   []experimentRow `json:"rows"`
}

// experimentRow is a cell there.
type experimentRow struct {
	Run         string             `json:"run"`
	Coordinates map[string]string  `json:"coordinates"`
	Repeat      int                `json:"repeat"`
	Status      experiment.Status  `json:"status"`
	Reason      string             `json:"reason,omitempty"`
	Values      map[string]float64 `json:"values"` // by column, those that are known
	Joules      string             `json:"joules_source,omitempty"`
	Memory      string             `json:"memory_source,omitempty"`
}

func (r *gridRun) object() *experimentObject {
	o := &experimentObject{Name: r.file.Name, Dir: r.dir.Path(), Cells: len(r.cells), OK: r.table.Count(experiment.OK), Failed: r.table.Count(experiment.Failed), Build: r.manifest.Build}
	for i := range r.table.Rows {
		row := &r.table.Rows[i]
		at := experimentRow{Run: row.Cell.Name(), Coordinates: map[string]string{}, Repeat: row.Cell.Repeat, Status: row.Status, Reason: row.Reason,
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
