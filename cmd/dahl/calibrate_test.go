package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"dahl/cmd/dahl/flags"
	"dahl/execute/hardware"
	"dahl/must"
	"dahl/plan"
	"dahl/platform"
	"dahl/rundir/durable"
)

// TestStartingPoint: without a file this machine is measured; a file of this machine is
// gone on with, one of another is refused unless it is to be written anew.
func TestStartingPoint(t *testing.T) {
	t.Chdir(t.TempDir())
	f := calibrateFlags{out: "here.toml"}
	here := must.Get(f.startingPoint(&flags.Options{}))(t)
	here.Models = []platform.Model{{Op: "relu", Type: "float32", Device: "cpu", Shape: "7", Active: 1, MedianNs: 5}}
	file := growingFile{path: f.out}
	must.Do(t, errors.Join(file.save(here), file.close()))
	p, err := f.startingPoint(&flags.Options{})
	if err != nil || len(p.Models) != 1 {
		t.Errorf("the file of this machine: %+v, error %v", p, err)
	}
	here.Name = "elsewhere"
	must.Do(t, durable.Write(f.out, here.WriteTOML))
	if _, err := f.startingPoint(&flags.Options{}); err == nil || !strings.Contains(err.Error(), "elsewhere") || !strings.Contains(err.Error(), "--force") {
		t.Errorf("the file of another machine: error %v", err)
	}
	f.force = true
	if p, err := f.startingPoint(&flags.Options{}); err != nil || len(p.Models) != 0 {
		t.Errorf("forced: %+v, error %v", p, err)
	}
}

// TestGrowingFile: the first save is written at once, the next one within an hour is not until
// the file is closed. Without a period each one is.
func TestGrowingFile(t *testing.T) {
	t.Chdir(t.TempDir())
	p := must.Get(hardware.Detect())(t)
	f := growingFile{path: "grow.toml", period: time.Hour}
	must.Do(t, f.close())
	if _, err := os.Stat(f.path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing was saved, and there is a file: %v", err)
	}
	for i, want := range []string{"first", "first"} {
		p.Name = []string{"first", "second"}[i]
		must.Do(t, f.save(p))
		if q, err := platform.Load(f.path); err != nil || q.Name != want {
			t.Errorf("after save %d: %v, error %v", i+1, q, err)
		}
	}
	must.Do(t, f.close())
	if q, err := platform.Load(f.path); err != nil || q.Name != "second" {
		t.Errorf("closed: %v, error %v", q, err)
	}
	p.Name, f.period = "third", 0
	must.Do(t, f.save(p))
	if q, err := platform.Load(f.path); err != nil || q.Name != "third" {
		t.Errorf("without a period: %v, error %v", q, err)
	}
	p.Models = []platform.Model{{Op: "relu", Type: "float32", Device: "cpu", Shape: "7", Active: 1, MedianNs: 5}}
	for path, models := range map[string]int{"grow.toml": 1, "nowhere/grow.toml": 0} {
		f := growingFile{path: path}
		if err := f.save(p); (err == nil) != (models > 0) || f.models != models {
			t.Errorf("%s has %d models: %v", path, f.models, err)
		}
	}
}

// spreadMachine is a machine of two cores, with a spread of its runs or without.
const spreadMachine = `host_power = "10 W"
[[memory]]
name = "ram"
bandwidth = "10 GB/s"
[[device]]
name = "cpu"
kind = "cpu"
count = 2
memory = "ram"
speed = { float32 = "10 GF/s" }
%spower = { idle = "1 W", busy = "5 W" }
`

// TestSimulateSamples: equal seeds print the same object to the byte, others another
// interval; without distributions and spreads every sample is the prediction itself.
func TestSimulateSamples(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "m.toml", fmt.Sprintf(spreadMachine, "run_spread = 0.05\n"))
	simulate := func(file, seed string) string {
		return mustRun(t, "simulate", "--platform", file, "--model", "mlp", "--batch", "16", "--policy", "heft", "--steps", "3", "--samples", "40", "--seed", seed, "--json")
	}
	first := simulate("m.toml", "5")
	if simulate("m.toml", "5") != first {
		t.Error("equal seeds print different objects")
	}
	type summaryOf struct {
		Makespan float64      `json:"makespan_s"`
		Samples  plan.Samples `json:"samples"`
	}
	var a, b, flat summaryOf
	for text, to := range map[string]*summaryOf{first: &a, simulate("m.toml", "6"): &b} {
		must.Do(t, json.Unmarshal([]byte(text), to))
	}
	if m := a.Samples.Makespan; !(m.Low < m.Median && m.Median < m.High) || m == b.Samples.Makespan {
		t.Errorf("seed 5: %+v, seed 6: %+v", m, b.Samples.Makespan)
	}
	writeTestFile(t, "flat.toml", fmt.Sprintf(spreadMachine, ""))
	must.Do(t, json.Unmarshal([]byte(simulate("flat.toml", "5")), &flat))
	if flat.Samples.Count != 0 || !strings.Contains(flat.Samples.Missing, "no distributions") {
		t.Errorf("nothing is drawn: %+v", flat.Samples)
	}
	must.Contain(t, mustRun(t, "simulate", "--platform", "flat.toml", "--model", "mlp", "--policy", "heft", "--samples", "40"), "samples   none: every duration of this run is one number")
	wantRefused(t, "simulate --platform m.toml --model mlp --samples -1", "--samples")
}
