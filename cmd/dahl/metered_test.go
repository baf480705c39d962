package main

import (
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/flags"
	"dahl/cmd/dahl/record"
	"dahl/cmd/dahl/words"
	"dahl/energy"
	"dahl/energy/meter"
	"dahl/must"
	"dahl/plan"
	"dahl/rundir"
	"dahl/train"
)

// The three tasks of TestCompareDevices on both devices take 25 us: the processor is busy
// with 5 W, the GPU 20 us with 7 W and 5 us idle with 3 W, 6.2 W on average. By their
// meters they drew 60 J in 4 s, 15 W, and 124 J in 20 s, 6.2 W; of the fan nothing is
// predicted, and what a meter has not counted yet is no measurement.
func TestMeteredSteps(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "unlike.toml", unlikePlatform)
	writeTestFile(t, "three.json", threeTasks)
	readings := []meter.Reading{{Of: energy.ProcessorsMeter, Joules: 60, Seconds: 4}, {Of: "g0", Joules: 124, Seconds: 20},
		{Of: "fan", Joules: 1, Seconds: 1}, {Of: "g0", Seconds: 1}}
	for devices, want := range map[string]string{
		"":       "processors 375 uJ per step (predicted 125 uJ, -66.7 %), g0 155 uJ per step (predicted 155 uJ, +0.0 %)",
		"cpu,g0": "g0 155 uJ per step (predicted 155 uJ, +0.0 %)", // units may have been left out
	} {
		w := must.Get(simulatedWorkload(t.Context(), &flags.Options{Platform: "unlike.toml", Graph: "three.json", Devices: devices, Policy: "heft", DType: "float32", Steps: 1}))(t)
		result := must.Get(w.Predict(t.Context()))(t)
		predicted, measured := w.figures(result), w.figures(result, readings...)
		steps := plan.MeteredSteps(&predicted, &measured)
		if got := words.Metered(steps); got != want || math.Abs(steps[len(steps)-1].ErrorPercent) > 1e-9 {
			t.Errorf("--devices %q: %s; want %s", devices, got, want)
		}
	}
}

// TestExecuteSaysWhatBecameOfMeters runs beside counters of one package: one that counts, the same shown twice, one that falls
// at every reading, and one that stands still. The text and energy.json say so, joules are measured in the first two only, and
// verify takes each run.
func TestExecuteSaysWhatBecameOfMeters(t *testing.T) {
	defer restoreMeters(flags.StartMeters, flags.IdleWindow)
	up := func(us int64) int64 { return 20 * us }
	// The two names of a mirrored counter are read one after the other. It moves every 10 ms alone, so that it hardly ever moves between.
	steps := func(us int64) int64 { return up(us - us%10_000) }
	for _, c := range []struct {
		name           string
		shows          func(us int64) int64
		mirrored       bool
		status         []meter.Status
		line, headline string
	}{
		{"counts", up, false, []meter.Status{meter.Counts}, "J of processors by RAPL (1 package); ", "(measured by meters)"},
		{"mirrored", steps, true, []meter.Status{meter.Counts, meter.Merged}, "meter     RAPL package-0 of processors merged: it shows the same as ", "(measured by meters)"},
		{"falls", func(us int64) int64 { return 200e9 - us }, false, []meter.Status{meter.Unknown}, "more than 3 times 500 W (taken for a package that does not say it); so the joules of processors are not measured\n", "(modelled, "},
		{"stuck", func(int64) int64 { return 17 }, false, []meter.Status{meter.Stuck}, "meter     RAPL package-0 of processors stuck: it shows 1.7e-05 J and has not moved in ", "(modelled, "},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			tree := t.TempDir()
			showJoules(t, tree, c.shows)
			if c.mirrored {
				must.Do(t, os.Symlink(filepath.Join(tree, "intel-rapl:0"), filepath.Join(tree, "intel-rapl:1")))
			}
			fakePowercap(tree)
			writeTestFile(t, "small.toml", smallNetwork)
			text := mustRun(t, strings.Fields("execute --model small.toml --data digits --limit 400 --epochs 40 --out run")...)
			if !strings.Contains(text, c.line) || !strings.Contains(text, c.headline) {
				t.Errorf("lacks %q or %q:\n%s", c.line, c.headline, text)
			}
			run := must.Get(record.LoadRun("run"))(t)
			report := must.Get(run.Energy())(t)
			var status []meter.Status
			for _, m := range report.Meters {
				status = append(status, m.Status)
			}
			if whole := c.status[0] == meter.Counts; !slices.Equal(status, c.status) || (len(report.Readings) == 1) != whole {
				t.Errorf("energy.json has %+v and %+v, want %v", report.Meters, report.Readings, c.status)
			}
			mustRun(t, "verify", "run")
		})
	}
}

// TestReadingsOfRun gives a run readings: its energy file has them beside the model, verify derives
// the model again and takes the readings as they are, and compare prints both. A processor of 2 W
// idle and 5 W busy draws 4 to 10 J in 2 s by the model.
func TestReadingsOfRun(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "node.toml", emulatedNode)
	mustRun(t, append(slices.Clone(recordedTraining), "--out", "run")...)
	run := must.Get(record.LoadRun("run"))(t)
	report := must.Get(run.Energy())(t)
	if len(report.Readings) != 0 && len(report.Metered) == 0 {
		t.Errorf("the readings of this machine are not compared: %+v", report.Readings)
	}
	w := &workload{opts: new(flags.Options), Workload: train.Workload{Platform: run.Problem.Platform}}
	report.Readings, report.Metered = nil, nil
	readings := []meter.Reading{{Of: energy.ProcessorsMeter, Meter: "RAPL", Joules: 8, Seconds: 2}, {Of: "g0", Meter: "NVML", Joules: 50, Seconds: 2}}
	if lost := w.withReadings(report, readings, true); len(lost.Readings) != 2 || len(lost.Metered) != 0 {
		t.Errorf("after a loss: %+v", lost)
	}
	with := w.withReadings(report, readings, false)
	if len(with.Metered) != 2 || with.Metered[0].ModelJoules < 4 || with.Metered[0].ModelJoules > 10 {
		t.Fatalf("beside the model: %+v", with.Metered)
	}
	put := func(r *energy.Report) {
		t.Helper()
		must.Do(t, record.ExtendRun("run", func(d *rundir.Dir) error {
			return d.Write(rundir.EnergyFile, func(out io.Writer) error { return json.NewEncoder(out).Encode(r) })
		}))
	}
	put(with)
	mustRun(t, "verify", "run")
	text := mustRun(t, "compare", "run")
	must.Contain(t, text, "J processors ", "(model and RAPL over 2 s of the measured run)", "J g0 ", " 50 ")
	with.Metered[1].ModelJoules *= 1.001
	put(with)
	wantEnd(t, cli.ExitFailed, "verify run", "give other joules")
}
