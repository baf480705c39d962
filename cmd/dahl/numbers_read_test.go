package main

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/record"
	"dahl/cmd/dahl/runs"
	"dahl/cmd/dahl/words"
	"dahl/must"
)

// reportRows reads the rows of the runs in a report, by name.
func reportRows(t *testing.T, page string) (rows []map[string]float64) {
	t.Helper()
	html := must.Get(os.ReadFile(page))(t)
	text := regexp.MustCompile(`id="data">([^<]*)</script>`).FindSubmatch(html)
	if text == nil {
		t.Fatalf("%s holds no data", page)
	}
	packed := must.Get(base64.StdEncoding.DecodeString(string(text[1])))(t)
	stream := must.Get(zlib.NewReader(bytes.NewReader(packed)))(t)
	all := must.Get(io.ReadAll(stream))(t)
	length, from := binary.Uvarint(all)
	var data struct {
		Runs []struct {
			Row []struct {
				Name   string
				Number *float64
			}
			Energy    struct{ Steps, Total_joules float64 }
			Schedules []struct{ Makespan float64 }
		}
	}
	must.Do(t, json.Unmarshal(all[from:from+int(length)], &data))
	for _, r := range data.Runs {
		row := map[string]float64{"shown steps": r.Energy.Steps, "J of the shown steps": r.Energy.Total_joules, "s of the shown steps": r.Schedules[0].Makespan / 1e9}
		for _, cell := range r.Row {
			if cell.Number != nil {
				row[cell.Name] = *cell.Number
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// inReport are the cells of a report by the names of quantities.
var inReport = map[string]string{"steps": "steps", "run": "run s", "step": "step s", "samples/s": "samples/s", "energy per sample": "J/sample", "energy of the run, modelled": "modelled joules of the run",
	"training loss": "training loss", "test accuracy": "test accuracy", "shown steps": "shown steps", "J of the shown steps": "J of the shown steps", "s of the shown steps": "s of the shown steps"}

func (n *numbers) readReport() {
	n.t.Helper()
	mustRun(n.t, "report", n.dir, "--out", "page.html")
	row := reportRows(n.t, "page.html")[0]
	for cell, quantity := range inReport {
		if v, has := row[cell]; has {
			n.says("the report", quantity, v)
		} else if v, has := n.said[quantity]; has && v != 0 {
			n.t.Errorf("%s: %s: the report does not say the %s", n.c, n.dir, quantity)
		}
	}
}

// readCompare reads the comparison with the run's own prediction, and its picture.
func (n *numbers) readCompare(s *record.Summary) {
	n.t.Helper()
	var c struct {
		Steps                 float64
		Step_s, Makespan_s    struct{ Predicted, Measured, Error_percent float64 }
		Run_step_s            *struct{ Predicted, Measured float64 }
		Joules_per_step       struct{ Measured float64 }
		Busy_s_per_step       struct{ Measured float64 }
		Kernels               []struct{ Sum_s_per_step struct{ Measured float64 } }
		Kernel_error_percent  float64
		Scheduling_error_Perc float64
	}
	decodeObject(n.t, mustRun(n.t, "compare", n.dir, "--json"), &c)
	n.says("compare", "shown steps", c.Steps)
	n.says("compare", "s of the shown steps", c.Makespan_s.Measured)
	n.says("compare", "s of the shown steps", c.Step_s.Measured*c.Steps)
	n.says("compare", "predicted s of the shown steps", c.Makespan_s.Predicted)
	n.says("compare", "J of the shown steps", c.Joules_per_step.Measured*c.Steps)
	if (c.Run_step_s != nil) != (s.StepS > 0 && s.Trained != nil && s.Trained.PredictedStepS > 0) {
		n.t.Errorf("%s: %s: the run's step is compared as %+v, where it takes %v s", n.c, n.dir, c.Run_step_s, s.StepS)
	} else if c.Run_step_s != nil {
		n.says("compare", "step s", c.Run_step_s.Measured)
		n.says(record.SummaryFile, "predicted step s", s.Trained.PredictedStepS)
		n.says("compare", "predicted step s", c.Run_step_s.Predicted)
	}
	busy := 0.0
	for _, k := range c.Kernels {
		busy += k.Sum_s_per_step.Measured
	}
	n.says("the kernels of compare", "busy s", busy)
	n.says("the workers of compare", "busy s", c.Busy_s_per_step.Measured)
	svg := must.Get(os.ReadFile(filepath.Join(n.dir, record.CompareFile)))(n.t)
	for _, want := range []string{fmt.Sprintf("%s, %+.1f %% (error: + where", cli.ShowTime(c.Makespan_s.Measured), c.Makespan_s.Error_percent), s.Shown.String(), words.AllKernels} {
		if !bytes.Contains(svg, []byte(want)) {
			n.t.Errorf("%s: %s: the picture of the comparison lacks %q", n.c, n.dir, want)
		}
	}
}

// readPrinted looks for the numbers in what execute prints.
func (n *numbers) readPrinted(s *record.Summary, printed string) {
	n.t.Helper()
	after := ""
	if s.Trained.ResumedAfterStep > 0 {
		after = fmt.Sprintf(" after step %d", s.Trained.ResumedAfterStep)
	}
	wants := []string{"run " + cli.ShowTime(s.MakespanS) + after + " (predicted"}
	if s.StepS > 0 {
		wants = append(wants, fmt.Sprintf("\nstep      %s, %s samples/s", cli.ShowTime(s.StepS), cli.WholeNumber(*s.SamplesPerS)), fmt.Sprintf("\nenergy    %s per sample (", cli.ShortJoules(s.EnergyJ.PerSample)))
	}
	if len(s.EnergyJ.Readings) == 0 {
		wants = append(wants, cli.ShortJoules(s.EnergyJ.Total)+" ("+s.EnergyJ.Grounds)
	}
	for _, want := range wants {
		if !strings.Contains(printed, want) {
			n.t.Errorf("%s: no %q in what is printed:\n%s", n.c, want, printed)
		}
	}
}

// beside lays a simulated run and another training beside the run.
func (c *numbersCase) beside(t *testing.T, s *record.Summary, random *rand.Rand) {
	t.Helper()
	line := fmt.Sprintf("simulate --platform run/platform.toml --model tiny.toml --data synthetic:1x8x8:%d:10 --batch %d --steps %d --policy heft --out sim", c.samples, c.batch, 1+random.IntN(8))
	printed := mustRun(t, strings.Fields(line)...)
	sim := must.Get(cli.ReadJSON[record.Summary]("sim/" + record.SummaryFile))(t)
	if want := fmt.Sprintf("\nstep      %s, %s samples/s", cli.ShowTime(sim.StepS), cli.WholeNumber(*sim.SamplesPerS)); !strings.Contains(printed, want) {
		t.Errorf("%s: no %q in\n%s", c, want, printed)
	}
	var pair struct {
		Run_step_s *struct{ Predicted, Measured float64 }
	}
	decodeObject(t, mustRun(t, "compare", "sim", "run", "--json"), &pair)
	if p := pair.Run_step_s; s.StepS > 0 && !c.stream && (p == nil || p.Predicted != sim.StepS || p.Measured != s.StepS) {
		t.Errorf("%s: beside a simulated run: %+v; want %v and %v", c, p, sim.StepS, s.StepS)
	}
	mustRun(t, "report", "sim", "run", "--out", "both.html")
	runs := decoded[runs.RunsComparison](t, mustRun(t, "compare", "sim", "run", "run", "--json"))
	for i, of := range []*record.Summary{sim, s} {
		row := reportRows(t, "both.html")[i]
		for _, f := range runs.Figures {
			want, known := map[string]float64{"step": of.StepS, "steps": float64(of.Steps), "run": of.MakespanS, "energy per sample": of.EnergyJ.PerSample, "energy of the run, modelled": of.EnergyJ.Total}[f.Name]
			in := math.NaN()
			if f.Values[i] != nil {
				in = *f.Values[i]
			}
			if known && want != 0 && (in != want || row[f.Name] != want) {
				t.Errorf("%s: %s of run %d is %v in a table and %v in the report; want %v", c, f.Name, i, in, row[f.Name], want)
			}
		}
	}
}
