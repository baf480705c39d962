package main

import (
	"math"
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
	"dahl/platform"
)

// unlikePlatform is emulatedNode on a host of 1 W.
const unlikePlatform = "host_power = \"1 W\"\n" + emulatedNode

const threeTasks = `{"format": "dahl-graph 1", "tasks": [{"name": "a", "ns": {"cpu": 25000, "emulated": 10000}},
 {"name": "b", "ns": {"cpu": 25000, "emulated": 10000}}, {"name": "c", "ns": {"cpu": 25000, "emulated": 10000}}]}`

// Three tasks without data take 25 us each on the processor and 10 us on the GPU.
// With the host's 1 W, 2 or 5 W of the processor and 3 or 7 W of the GPU:
//
//	processor alone  75 us at 1 + 3 (the GPU idles) + 5 W    675 uJ
//	GPU alone        30 us at 1 + 2 (a processor waits) + 7 W   300 uJ
//	both             25 us: two on the GPU, one on the processor:
//	                 25 us at 1 + 5 W, 20 us at 7 W, 5 us at 3 W   305 uJ
func TestCompareDevices(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "unlike.toml", unlikePlatform)
	writeTestFile(t, "three.json", threeTasks)
	line := []string{"simulate", "--platform", "unlike.toml", "--graph", "three.json", "--steps", "1", "--out", "out"}
	s := decoded[record.Summary](t, mustRun(t, append(line, "--devices", "gpu,cpu", "--json")...))
	if s.Devices == nil || len(s.Devices.Rows) != 3 {
		t.Fatalf("comparison %+v, want three rows", s.Devices)
	}
	for i, want := range []struct {
		devices       string
		steps, joules float64
	}{{"cpu", 75e-6, 675e-6}, {"g0", 30e-6, 300e-6}, {"cpu,g0", 25e-6, 305e-6}} {
		r := &s.Devices.Rows[i]
		if p := r.Predicted; r.Devices != want.devices || math.Abs(p.StepS-want.steps) > 1e-12 || math.Abs(p.JoulesPerStep-want.joules) > 1e-12 || p.Basis != energy.Modelled || r.Measured != nil {
			t.Errorf("row %d: %+v, want %+v", i, r, want)
		}
	}
	if s.Devices.Fastest != "cpu,g0" || s.Devices.Frugal != "g0" || s.Devices.Basis != "predicted" {
		t.Errorf("best: %+v", s.Devices)
	}
	out := mustRun(t, append(line, "--devices", "cpu,g0")...)
	must.Contain(t, out, "fastest on cpu,g0, fewest joules on g0 (as predicted)")
	for _, devices := range []string{"", "cpu", "gpu"} {
		alone := decoded[record.Summary](t, mustRun(t, append(line, "--devices", devices, "--json")...))
		if alone.Devices != nil {
			t.Errorf("--devices %q compares %+v", devices, alone.Devices)
		}
	}
	mustRun(t, append(line, "--devices", "cpu,g0")...)
	// A plan is for all devices; each kind alone is planned anew.
	plan := mustRun(t, append(line, "--devices", "cpu,g0", "--plan", "out/plan.json", "--out", "planned")...)
	must.Contain(t, plan, "fastest on cpu,g0, fewest joules on g0 (as predicted)")
	wantRepeated(t, "out")
	mustRun(t, "verify", "out")
}

// The last line says of which world the best rows are, and where joules are not compared why.
func TestSetsText(t *testing.T) {
	c := &plan.SetComparison{Fastest: "c", Basis: "measured", Frugal: "a", FrugalBasis: "predicted",
		Rows: []plan.SetRow{{Devices: "a", Predicted: plan.StepFigures{StepS: 3e-3, JoulesPerStep: 5, Basis: energy.Modelled}}}}
	var out strings.Builder
	if words.PrintSets(&out, c); !strings.Contains(out.String(), "fastest on c (as measured), fewest joules on a (as predicted, since") {
		t.Errorf("joules of two sources:\n%s", &out)
	}
	out.Reset()
	c.Frugal, c.FrugalBasis = "", ""
	if words.PrintSets(&out, c); !strings.Contains(out.String(), "fastest on c (as measured); joules are unknown") {
		t.Errorf("joules are unknown:\n%s", &out)
	}
}

// A set that cannot run is told of, and does not keep the others from an answer.
func TestDevicesThatCannotRun(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "small.toml", strings.Replace(emulatedNode, "64 MB", "64 B", 1))
	writeTestFile(t, "large.json", `{"format": "dahl-graph 1", "buffers": [{"name": "x", "shape": [70], "type": "uint8"}],
 "tasks": [{"name": "a", "writes": ["x"], "ns": {"cpu": 5000, "emulated": 3000}}]}`)
	out := mustRun(t, "simulate", "--platform", "small.toml", "--graph", "large.json", "--devices", "cpu,gpu", "--out", "out")
	if !strings.Contains(out, "g0           cannot run: ") || !strings.Contains(out, "70 B") || !strings.Contains(out, "fastest on cpu") {
		t.Errorf("the table:\n%s", out)
	}
}

// Meters stand for a run only where each device that runs layers has one.
func TestCovers(t *testing.T) {
	p := &platform.Platform{Devices: []platform.Device{{Name: "cpu", Kind: "cpu"}, {Name: "g0", Kind: "cuda"}, {Name: "g1", Kind: "cuda"}}}
	of := func(names ...string) (r []meter.Reading) {
		for _, n := range names {
			r = append(r, meter.Reading{Of: n})
		}
		return r
	}
	if record.Covers(nil, p) || record.Covers(of(energy.ProcessorsMeter, "g0"), p) || record.Covers(of("g0", "g1"), p) {
		t.Error("a device without a meter is covered")
	}
	if !record.Covers(of(energy.ProcessorsMeter, "g0", "g1"), p) {
		t.Error("all devices have meters and are not covered")
	}
	p.Devices[0].PlacedOnly = true
	if !record.Covers(of("g0", "g1"), p) {
		t.Error("a processor that only serves the GPUs needs a meter")
	}
}

// The joules of a step are the meters' mean power times the step, and only theirs.
func TestMeasuredFigures(t *testing.T) {
	t.Chdir(t.TempDir())
	o := flags.Options{Platform: "laptop", Model: "mlp", Policy: "heft", DType: "float32", Batch: 10, Steps: 3}
	w := must.Get(simulatedWorkload(t.Context(), &o))(t)
	result := must.Get(w.Predict(t.Context()))(t)
	step := result.Counted.StepS()
	if f := w.figures(result); f.Basis != energy.Modelled || f.StepS != step || math.Abs(f.JoulesPerStep/(result.Report.MeanWatts*step)-1) > 1e-12 || math.Abs(f.SamplesPerS*step-10) > 1e-9 {
		t.Errorf("modelled: %+v", f)
	}
	// 60 J in 4 s are 15 W.
	reading := meter.Reading{Of: energy.ProcessorsMeter, Joules: 60, Seconds: 4}
	if f := w.figures(result, reading); f.Basis != energy.Measured || math.Abs(f.JoulesPerStep-15*step) > 1e-12 || math.Abs(f.JoulesPerSample-1.5*step) > 1e-12 {
		t.Errorf("measured: %+v", f)
	}
	// Of something else: not of the run.
	reading.Of = "gpu0"
	if f := w.figures(result, reading); f.Basis != energy.Modelled {
		t.Errorf("metered elsewhere: %+v", f)
	}
}

func TestReadingsText(t *testing.T) {
	got := words.Readings([]meter.Reading{
		{Of: energy.ProcessorsMeter, Meter: "RAPL", Joules: 12.34, ErrorJoules: 0.012},
		{Of: "gpu0", Meter: "counter", Joules: 560, ErrorJoules: 11, Second: &meter.SecondReading{Meter: "power", Joules: 500, DisagreementPercent: 12}},
	})
	want := []string{"12.3 ± 0.012 J of processors by RAPL", "560 ± 11 J of gpu0 by counter (500 J by power: +12.0 %)"}
	if !slices.Equal(strings.Split(got, ", "), want) {
		t.Errorf("got %q", got)
	}
}

// emulatedNode is a core and an emulated GPU whose link and speed are those of no machine.
const emulatedNode = `[[memory]]
name = "ram"
bandwidth = "10 GB/s"
[[memory]]
name = "own"
capacity = "64 MB"
bandwidth = "50 GB/s"
[[device]]
name = "cpu"
kind = "cpu"
memory = "ram"
speed = { float32 = "10 GF/s" }
cache = { l2 = "1 MB" }
power = { idle = "2 W", busy = "5 W" }
[[device]]
name = "g0"
kind = "emulated"
memory = "own"
speed = { float32 = "10 GF/s" }
copy_engines = { in = 1, out = 1 }
power = { idle = "3 W", busy = "7 W" }
[[link]]
name = "bus"
bandwidth = "8 GB/s"
latency = "5 us"
sharing = "duplex"
[[route]]
from = "ram"
to = "own"
links = ["bus"]
`

// A training on a core and an emulated GPU, and on each alone: what was measured is
// there in both, passes every check, and repeats to the bit.
func TestExecuteOnUnlikeDevices(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "node.toml", emulatedNode)
	line := []string{"execute", "--platform", "node.toml", "--model", "digits-cnn", "--limit", "128", "--batch", "64", "--out", "e", "--json"}
	s := decoded[record.Summary](t, mustRun(t, append(line, "--devices", "cpu,gpu", "--compare-devices")...))
	if s.Devices == nil || len(s.Devices.Rows) != 3 || s.Devices.Basis != "measured" {
		t.Fatalf("comparison %+v, want three measured rows", s.Devices)
	}
	for _, r := range s.Devices.Rows {
		if r.Measured == nil || r.Measured.StepS <= 0 || r.Measured.JoulesPerSample <= 0 || r.Measured.Basis != energy.Modelled || r.Predicted.StepS <= 0 {
			t.Errorf("row %+v: want a step and modelled joules of both worlds", r)
		}
	}
	moved, count := int64(0), 0
	for _, total := range s.TransfersByReason {
		moved, count = moved+total.Bytes, count+total.Count
	}
	if s.Transfers == 0 || count != s.Transfers || moved != s.BytesMoved {
		t.Errorf("%d transfers of %d bytes, by reason %v", s.Transfers, s.BytesMoved, s.TransfersByReason)
	}
	for memory, peak := range s.LivePeakBytes {
		if planned := s.ReservedBytes[memory]; peak == 0 || planned < peak {
			t.Errorf("memory %s: %d bytes live, %d planned", memory, peak, planned)
		}
	}
	wantVerified(t, "e")
	wantRepeated(t, "e")
	if m, err := record.ReadManifest("e"); err != nil || m.Issue == nil || m.Issue.Segments == 0 || m.Issue.Segments > m.Issue.Tasks {
		t.Errorf("a step is issued as %+v, %v", m.Issue, err)
	}
	mustRun(t, "plot", "e", "memory", "gantt", "--format", "png")
	mustRun(t, "trace", "e")
	decided := decoded[record.Summary](t, mustRun(t, append(line, "--devices", "cpu,gpu", "--policy", "dmda", "--out", "d")...))
	if decided.Trained.WeightsSHA256 != s.Trained.WeightsSHA256 || decided.Transfers == 0 {
		t.Errorf("a policy that decides at run time: %d transfers, weights %s, with a plan %s", decided.Transfers, decided.Trained.WeightsSHA256, s.Trained.WeightsSHA256)
	}
	for memory, peak := range decided.LivePeakBytes {
		if bound := decided.ReservedBytes[memory]; peak == 0 || bound < peak {
			t.Errorf("memory %s: %d bytes live, at most %d", memory, peak, bound)
		}
	}
	wantVerified(t, "d")
}

// TestRoomForParts: where memories have no room for HEFT's plan, the refusal says how much is missing in the units of the
// platform file and what fits, and the policy best takes that for the same tiles.
func TestRoomForParts(t *testing.T) {
	t.Chdir(t.TempDir())
	// 1.4 MB are too little for what HEFT leaves in one GPU of a step of digits-cnn, and enough where each has a half of the batch.
	writeTestFile(t, "two.toml", strings.NewReplacer("64 MB", "1.4 MB", "10 GF/s", "1 TF/s").Replace(faultyNode()))
	const line = "simulate --platform two.toml --model digits-cnn --batch 64 --devices gpu --out s"
	wantEnd(t, cli.ExitBadInput, line+" --policy heft", "has 1.4 MB and would hold ", "; it fits with --policy data-parallel")
	wantEnd(t, cli.ExitOK, line+" --lowering default", "policy best (data-parallel)")
}
