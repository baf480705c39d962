package main

import (
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/flags"
	"dahl/cmd/dahl/record"
	"dahl/must"
	"dahl/plan/best"
	"dahl/platform"
	"dahl/rundir"
)

// TestBestPolicy: without a policy a run has the devices on which it is fastest: with default tiles one of the server's GPUs for
// the mlp, since copies to other devices cost more than these save. The run says so, repeats, and is that of --plan
// and of --devices. Chosen tiles are faster still.
func TestBestPolicy(t *testing.T) {
	t.Chdir(t.TempDir())
	simulate := func(dir string, more ...string) (s record.Summary) {
		decodeObject(t, mustRun(t, slices.Concat([]string{"simulate", "--platform", "server", "--model", "mlp", "--json", "--out", dir}, more)...), &s)
		return s
	}
	best, all := simulate("best", "--lowering", "default"), simulate("all", "--policy", "dmda") // the fastest that the search has on all
	if best.Chosen == nil || best.Chosen.Devices != "gpu0" || best.Chosen.Of != "cpu0:36,cpu1:36,gpu0,gpu1,gpu2,gpu3" {
		t.Fatalf("chosen devices %+v, want gpu0", best.Chosen)
	}
	// The plan on all is estimated by 12 steps; the other run has 10.
	if times := all.StepS / best.StepS; math.Abs(best.Chosen.TimesAsFast/times-1) > 0.05 || times < 2 {
		t.Errorf("%g times as fast as all, and the runs differ by %g", best.Chosen.TimesAsFast, times)
	}
	for _, devices := range []string{"cpu0", "cpu", "gpu", "gpu0", "cpu0:4,gpu0"} {
		if other := simulate("other", "--policy", "heft", "--devices", devices); other.StepS < best.StepS {
			t.Errorf("a step takes %g s, and by HEFT on %s %g s", best.StepS, devices, other.StepS)
		}
	}
	m, err := record.ReadManifest("best")
	if err != nil || m.Chosen == nil || *m.Chosen != *best.Chosen || m.Options.Policy != flags.BestPolicy {
		t.Errorf("the manifest has %+v, %v; the summary %+v", m.Chosen, err, best.Chosen)
	}
	wantVerified(t, "best")
	wantRepeated(t, "best")
	simulate("replayed", "--plan", "best/plan.json")
	sameFiles(t, rundir.ScheduleFile, "best", "replayed")
	simulate("fenced", "--devices", "gpu0", "--lowering", "default")
	sameFiles(t, rundir.ScheduleFile, "best", "fenced")
	if fenced := simulate("fenced", "--devices", "cpu"); fenced.Chosen == nil || strings.Contains(fenced.Chosen.Devices, "gpu") {
		t.Errorf("within --devices cpu it chose %+v", fenced.Chosen)
	}
	out := mustRun(t, "simulate", "--platform", "server", "--model", "mlp", "--out", "tiled")
	tiled := must.Get(cli.ReadJSON[record.Summary](filepath.Join("tiled", record.SummaryFile)))(t)
	if of := tiled.Chosen; of == nil || of.Tiles == "" || tiled.StepS >= best.StepS || math.Abs(of.TilesFaster/(best.StepS/tiled.StepS)-1) > 0.05 {
		t.Errorf("%g s with chosen tiles, %+v; with default ones %g s", tiled.StepS, of, best.StepS)
	}
	wantVerified(t, "tiled")
	wantRepeated(t, "tiled")
	simulate("replayed", "--plan", "tiled/plan.json")
	sameFiles(t, rundir.ScheduleFile, "tiled", "replayed")
	must.Contain(t, out, "\ndevices   "+strings.ReplaceAll(tiled.Chosen.Devices, ",", ", ")+" of cpu0:36, cpu1:36, gpu0…: ", "policy best (",
		"\ntiles     chosen for the machine by a model of the layers: ", " times as fast as default ones; --lowering default keeps to default ones\n")
}

// TestTilesOfTheWhole: tiles are chosen for all cores that the file gives a machine, at its first clock and without its cap. On some of them, or on a slower
// one, a run has the same tiles and variants, and a training the same weights.
func TestTilesOfTheWhole(t *testing.T) {
	t.Chdir(t.TempDir())
	lowering := func(dir string, args ...string) *record.Manifest {
		mustRun(t, slices.Concat([]string{"simulate", "--platform", "laptop", "--model", "lenet5", "--out", dir}, args)...)
		return manifestOf(t, dir)
	}
	whole, standard := lowering("whole"), lowering("default", "--lowering", "default")
	if whole.Chosen == nil || whole.Chosen.TilesFaster < 1.5 || reflect.DeepEqual(whole.Lowering, standard.Lowering) || standard.Chosen != nil {
		t.Fatalf("chosen are %+v, with --lowering default %+v", whole.Chosen, standard.Chosen)
	}
	for _, args := range [][]string{{"--devices", "cpu:3"}, {"--clock", "cpu=slow"}, {"--power-cap", "12 W"}} {
		if some := lowering("some", args...); !reflect.DeepEqual(some.Lowering, whole.Lowering) || !slices.Equal(some.Variants, whole.Variants) {
			t.Errorf("%v: another lowering, or other variants", args)
		}
		wantRepeated(t, "some")
	}
	writeTestFile(t, "node.toml", strings.Replace(emulatedNode, `kind = "cpu"`, `kind = "cpu"
count = 3`, 1))
	for _, cores := range []string{"3", "1"} {
		mustRun(t, "execute", "--platform", "node.toml", "--devices", "cpu:"+cores, "--model", "digits-cnn", "--limit", "64", "--batch", "64", "--out", cores)
	}
	wantRepeated(t, "1")
	three, one := manifestOf(t, "3"), manifestOf(t, "1")
	if one.Chosen == nil || one.Chosen.Tiles == "" || three.WeightsHash != one.WeightsHash || !reflect.DeepEqual(three.Lowering, one.Lowering) {
		t.Errorf("on one core %+v with the weights %s, on three %+v with %s", one.Chosen, one.WeightsHash, three.Chosen, three.WeightsHash)
	}
}

// TestBestPolicyExecuted: a training opens the chosen devices alone and repeats. Where their lowering is that of all
// devices, the weights are those of any other policy. A copy takes
// longer than all of a step on the processor.
func TestBestPolicyExecuted(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "node.toml", strings.Replace(emulatedNode, `latency = "5 us"`, `latency = "5 ms"`, 1))
	train := func(dir string, more ...string) (s record.Summary) {
		decodeObject(t, mustRun(t, slices.Concat([]string{"execute", "--platform", "node.toml", "--model", "digits-cnn", "--limit", "128", "--batch", "64", "--lowering", "default", "--json", "--out", dir}, more)...), &s)
		return s
	}
	s := train("best")
	if s.Chosen == nil || s.Chosen.Devices != "cpu" || s.Transfers != 0 || len(s.LivePeakBytes) != 2 {
		t.Errorf("on %+v with %d transfers, want the processor alone", s.Chosen, s.Transfers)
	}
	run := mustLoad(t, "best")
	if slices.ContainsFunc(run.Problem.Platform.Workers, func(w platform.Worker) bool { return strings.HasPrefix(w.Name, "g0") }) {
		t.Errorf("the run has the workers %+v", run.Problem.Platform.Workers)
	}
	wantVerified(t, "best")
	wantRepeated(t, "best")
	for _, other := range []record.Summary{train("heft", "--devices", "cpu", "--policy", "heft"), train("eager", "--devices", "cpu", "--policy", "eager")} {
		if other.Trained.WeightsSHA256 != s.Trained.WeightsSHA256 {
			t.Errorf("policy %s: weights %s, the chosen devices give %s", other.Policy, other.Trained.WeightsSHA256, s.Trained.WeightsSHA256)
		}
	}
}

// TestBestPolicyOfADetectedMachine: its rates are guesses, so that all cores are used.
func TestBestPolicyOfADetectedMachine(t *testing.T) {
	t.Chdir(t.TempDir())
	mustRun(t, "execute", "--model", "digits-cnn", "--limit", "64", "--batch", "64", "--out", "e")
	m, err := record.ReadManifest("e")
	if err != nil || m.Chosen != nil || m.Options.Policy != flags.ListPolicy {
		t.Errorf("chosen devices %+v, policy %s, %v; want all, by %s", m.Chosen, m.Options.Policy, err, flags.ListPolicy)
	}
}

// chainFiles writes a chain of tasks that change one buffer, each of 10 us on the processor and 1 us on the GPU, to which a copy
// takes 30 us. HEFT asks for each task alone where it ends first, and leaves all on the processor.
func chainFiles(t *testing.T, tasks int) (line []string) {
	t.Helper()
	writeTestFile(t, "node.toml", strings.Replace(emulatedNode, `latency = "5 us"`, `latency = "30 us"`, 1))
	var list []string
	for i := range tasks {
		list = append(list, fmt.Sprintf(`{"name": "t%d", "updates": ["x"], "ns": {"cpu": 10000, "g0": 1000}}`, i))
	}
	writeTestFile(t, "chain.json", `{"format": "dahl-graph 1", "buffers": [{"name": "x", "shape": [64], "type": "uint8"}], "tasks": [`+strings.Join(list, ",\n")+`]}`)
	return []string{"simulate", "--platform", "node.toml", "--graph", "chain.json", "--steps", "1"}
}

// TestBestPolicyOfManyTasks: sets are compared for many tasks too. A chain of 5,001 tasks takes 50 ms
// where HEFT plans for all devices, and 5.001 ms and a copy of 30 us on the GPU alone, which is chosen. The table of both
// kinds says what the run is.
func TestBestPolicyOfManyTasks(t *testing.T) {
	t.Chdir(t.TempDir())
	line := chainFiles(t, 5001)
	s := decoded[record.Summary](t, mustRun(t, append(line, "--devices", "cpu,gpu", "--json", "--out", "s")...))
	if s.MakespanS < 5.03e-3 || s.MakespanS > 5.2e-3 || s.Chosen == nil || s.Chosen.Devices != "g0" || s.Chosen.TimesAsFast < 1 {
		t.Errorf("%v s on %+v, want 5.03 ms on g0", s.MakespanS, s.Chosen)
	}
	if c := s.Devices; c == nil || c.Fastest != "g0" || len(c.Rows) != 3 || c.Rows[2].Used() != "g0" || c.Rows[2].Predicted.StepS != s.MakespanS || c.Rows[0].Predicted.StepS < 50e-3 {
		t.Errorf("the table is %+v", c)
	}
	out := mustRun(t, append(line, "--out", "t")...)
	must.Contain(t, out, "devices   g0 of cpu, g0: as fast as all;")
	wantRepeated(t, "t")
}

// TestFastestIsTheRun: where a row of the table is faster than what was decided, the run takes it: the chain of 20 tasks on
// the GPU, 50 us, and not 200 us by HEFT.
func TestFastestIsTheRun(t *testing.T) {
	t.Chdir(t.TempDir())
	chainFiles(t, 20)
	o := &flags.Options{Platform: "node.toml", Graph: "chain.json", Devices: "cpu,gpu", Policy: flags.BestPolicy, DType: "float32", Steps: 1, Seed: 1}
	w := must.Get(undecidedWorkload(t.Context(), o))(t)
	must.Do(t, w.decide())
	w.searchPlatform, w.search = w.Platform, &searched{found: &best.Result{}}
	result := must.Get(w.Predict(t.Context()))(t)
	sets, runs, err := w.compareSets(t.Context(), result, false)
	if step := w.figures(result).StepS; err != nil || sets.Fastest != "g0" || step < 200e-6 {
		t.Fatalf("decided for %v s, %+v, %v", step, sets, err)
	}
	result = w.takeFaster(sets, runs, result)
	if step := w.figures(result).StepS; step > 60e-6 || w.chosenDevices == nil || w.chosenDevices.Devices != "g0" || sets.Rows[2].Used() != "g0" || sets.Rows[2].Predicted.StepS != step {
		t.Errorf("the run takes %v s on %+v; the table is %+v", step, w.chosenDevices, sets)
	}
}
