package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/inspect"
	"dahl/cmd/dahl/record"
	"dahl/must"
	"dahl/plan"
	"dahl/platforms"
	"dahl/rundir"
)

// decodeObject decodes exactly one JSON object into v.
func decodeObject(t *testing.T, text string, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), v); err != nil {
		t.Fatalf("not one JSON object: %v\n%s", err, text)
	}
}

// decoded is exactly one JSON object.
func decoded[T any](t *testing.T, text string) (v T) {
	t.Helper()
	decodeObject(t, text, &v)
	return v
}

// sameFiles reports whether a file is equal in two directories.
func sameFiles(t *testing.T, name, a, b string) {
	t.Helper()
	x := must.Get(os.ReadFile(filepath.Join(a, name)))(t)
	y := must.Get(os.ReadFile(filepath.Join(b, name)))(t)
	if string(x) != string(y) {
		t.Errorf("%s differs between %s and %s", name, a, b)
	}
}

// twoTasks is a chain of two tasks of 3 and 4 ms that share a buffer.
const twoTasks = `{"format": "dahl-graph 1", "name": "two",
 "buffers": [{"name": "x", "shape": [5], "type": "float32"}],
 "tasks": [
  {"name": "first", "op": "f", "writes": ["x"], "ns": {"*": 3000000}},
  {"name": "second", "op": "g", "updates": ["x"], "ns": {"*": 4000000}}]}`

// TestSimulateByHand predicts a graph whose step cannot take less than 3 + 4 ms,
// and not much more on one machine with one memory.
func TestSimulateByHand(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "two.json", twoTasks)
	s := decoded[record.Summary](t, mustRun(t, "simulate", "--platform", "laptop", "--graph", "two.json", "--steps", "1", "--out", "run", "--json"))
	if s.Tasks != 2 || s.Transfers != 0 || s.Steps != 1 {
		t.Errorf("tasks %d, transfers %d, steps %d; want 2, 0, 1", s.Tasks, s.Transfers, s.Steps)
	}
	if s.MakespanS < 7e-3 || s.MakespanS > 7.1e-3 {
		t.Errorf("makespan %v s, want 7 ms and two dispatches", s.MakespanS)
	}
	decodeObject(t, mustRun(t, "simulate", "--platform", "laptop", "--graph", "two.json", "--out", "run", "--json"), &s)
	if s.Steps != 1 {
		t.Errorf("a graph file is simulated for %d steps where none are named, want 1", s.Steps)
	}
	if s.LowerBoundS < 7e-3 || s.LowerBoundS > s.MakespanS {
		t.Errorf("lower bound %v s, want between 7 ms and the makespan", s.LowerBoundS)
	}
	r := decoded[inspect.GraphReport](t, mustRun(t, "graph", "--graph", "two.json", "--platform", "laptop", "--json"))
	if r.Tasks != 2 || r.Levels != 2 || r.Width != 1 || r.CriticalS != 7e-3 || r.CriticalTasks != 2 {
		t.Errorf("graph says %+v, want 2 tasks on 2 levels of width 1, critical path 7 ms", r)
	}
}

// TestStepWork: five tasks of 1 ms on two units are three waves and take 3 ms, of which one unit has 1 ms without work: a sixth of the
// 6 ms of both. Each reads and writes 8 bytes. The other layer has less work, and one task of the larger one is a change of layout.
func TestStepWork(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "two.toml", twoUnits)
	tasks, layer := "", `"ns": {"*": 1000000}, "labels": {"layer": "a", "phase": "forward"}`
	for i := range 5 {
		tasks += fmt.Sprintf(`{"name": "a%d", "op": "x", "flops": 7, "bytes": 8, %s}, `, i, layer)
	}
	writeTestFile(t, "five.json", `{"format": "dahl-graph 1", "name": "five", "buffers": [], "tasks": [`+tasks+`{"name": "layout", "op": "y", "ns": {"*": 0}, `+layer[len(`"ns": {"*": 1000000}, `):]+`},
 {"name": "b", "op": "x", "ns": {"*": 0}, "flops": 30, "labels": {"layer": "b", "phase": "forward"}}]}`)
	s := decoded[record.Summary](t, mustRun(t, strings.Fields("simulate --platform two.toml --graph five.json --policy heft --json")...))
	if w := s.Work; w == nil || w.Tasks != 7 || w.Bytes != 40 || w.Waves != 3 || math.Abs(w.Tail-1./6) > 1e-9 {
		t.Errorf("the step is %+v in %v s", w, s.MakespanS)
	}
}

func TestSimulatedRuns(t *testing.T) {
	t.Chdir(t.TempDir())
	network := []string{"--platform", "laptop", "--model", "digits-cnn", "--batch", "17", "--steps", "3"}
	at := func(command, dir string, more ...string) []string {
		return slices.Concat([]string{command, "--out", dir}, network, more)
	}
	mustRun(t, at("simulate", "a")...)
	mustRun(t, at("simulate", "b")...)
	for _, name := range []string{rundir.ScheduleFile, rundir.PlanFile, rundir.EnergyFile, record.SummaryFile, rundir.GraphFile, rundir.PlatformFile, rundir.ManifestName, "gantt.svg"} {
		sameFiles(t, name, "a", "b")
	}
	must.Contain(t, mustRun(t, at("plan", "p")...), "cpu.0")
	mustRun(t, at("simulate", "replayed", "--plan", "p/plan.json")...)
	sameFiles(t, rundir.ScheduleFile, "a", "replayed")

	for _, dir := range []string{"a", "p", "replayed"} {
		wantVerified(t, dir)
		if out := mustRun(t, "rerun", dir); strings.Contains(out, "DIFFERENT") || strings.Count(out, " same\n") < 6 {
			t.Errorf("rerun %s:\n%s", dir, out)
		}
	}
	// A plan for one batch size is of another graph than that of the next.
	wantRefused(t, "simulate --platform laptop --model digits-cnn --batch 19 --plan p/plan.json --out c", "another graph")
	testTampering(t)
}

// testTampering changes files of the runs a, p and replayed: verify and rerun say so.
func testTampering(t *testing.T) {
	edit := func(path, old, with string) {
		t.Helper()
		data, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(data), old) {
			t.Fatalf("%s does not hold %q (%v)", path, old, err)
		}
		writeTestFile(t, path, strings.Replace(string(data), old, with, 1))
	}
	edit("a/"+rundir.EnergyFile, ": 0.", ": 1.")
	wantEnd(t, cli.ExitFailed, "verify a", "other joules")
	wantEnd(t, cli.ExitFailed, "rerun a", "DIFFERENT")
	edit("p/"+rundir.PlanFile, "heft", "hift") // an input of the run "replayed"
	wantRefused(t, "rerun replayed", "has changed")
	writeTestFile(t, "p/"+rundir.ScheduleFile, "{}")
	wantEnd(t, cli.ExitFailed, "verify p")
}

func TestExportedGraphsAreOne(t *testing.T) {
	t.Chdir(t.TempDir())
	reports := make([]inspect.GraphReport, 4)
	decodeObject(t, mustRun(t, "graph", "--model", "mlp", "--batch", "7", "--export", "g.json", "--json"), &reports[0])
	mustRun(t, "graph", "--model", "mlp", "--batch", "7", "--export", "g.txt")
	mustRun(t, "graph", "--model", "mlp", "--batch", "7", "--export", "g.dot")
	mustRun(t, "graph", "--model", "mlp", "--batch", "7", "--export", "tiles.toml")
	decodeObject(t, mustRun(t, "graph", "--model", "mlp", "--batch", "7", "--lowering", "tiles.toml", "--json"), &reports[3])
	decodeObject(t, mustRun(t, "graph", "--graph", "g.json", "--json"), &reports[1])
	decodeObject(t, mustRun(t, "graph", "--graph", "g.txt", "--json"), &reports[2])
	for _, r := range reports[1:] {
		if r.SHA256 != reports[0].SHA256 || r.Flops != reports[0].Flops {
			t.Errorf("graph %s with %v flop was read back as %s with %v", reports[0].SHA256, reports[0].Flops, r.SHA256, r.Flops)
		}
	}
	var tasks int
	var flops float64
	for _, p := range reports[0].Parts {
		tasks, flops = tasks+p.Tasks, flops+p.Flops
	}
	if tasks != reports[0].Tasks || flops != reports[0].Flops {
		t.Errorf("the parts have %d tasks and %v flop, the whole %d and %v", tasks, flops, reports[0].Tasks, reports[0].Flops)
	}
	if dot, err := os.ReadFile("g.dot"); err != nil || !strings.HasPrefix(string(dot), "digraph") {
		t.Errorf("g.dot is no digraph (%v)", err)
	}
}

func TestLists(t *testing.T) {
	if out := mustRun(t, "graph", "--list"); !strings.Contains(out, "lenet5") || !strings.Contains(out, "61,706 weights") {
		t.Errorf("the list of networks lacks lenet5, which has 61,706 weights:\n%s", out)
	}
	var list struct{ Kernels []inspect.KernelLine }
	decodeObject(t, mustRun(t, "kernels", "--json"), &list)
	i := slices.IndexFunc(list.Kernels, func(k inspect.KernelLine) bool { return k.Op == "dense" })
	if i < 0 || len(list.Kernels[i].Operands) != 4 || !slices.Contains(list.Kernels[i].Devices["cpu"], "ref") || !slices.Contains(list.Kernels[i].Devices["cuda"], "cuda") {
		t.Errorf("the table lacks dense with y, x, w, b and the variants ref and cuda: %+v", list.Kernels)
	}
	for _, k := range list.Kernels { // host operations have no variant, the others one for processors at least
		if isHost := slices.Contains([]string{"feed", "fetch", "feed.images", "feed.labels"}, k.Op); isHost != (len(k.Variants) == 0) || isHost != (len(k.Devices["cpu"]) == 0) {
			t.Errorf("%s: variants %v, by device %v", k.Op, k.Variants, k.Devices)
		}
	}
	must.Contain(t, mustRun(t, "kernels"), "dense.dw")
}

// TestKernelsOfCalibration reads one model: 70 flop and 210 bytes in 7 us are
// 1e7 flop/s and 3e7 bytes/s.
func TestKernelsOfCalibration(t *testing.T) {
	t.Chdir(t.TempDir())
	laptop := must.Get(platforms.Open("laptop"))(t)
	writeTestFile(t, "measured.toml", string(laptop)+`
[[model]]
op = "add"
variant = "ref"
type = "float32"
device = "cpu"
shape = "7x5+;7x5"
active = 1
median = "7 us"
p95 = "11 us"
count = 13
flops = "70 F"
bytes = "210 B"
`)
	var k struct{ Kernels []inspect.KernelTime }
	decodeObject(t, mustRun(t, "kernels", "measured.toml", "--json"), &k)
	if len(k.Kernels) != 1 {
		t.Fatalf("%d kernels, want 1", len(k.Kernels))
	}
	got := k.Kernels[0]
	near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-12*b }
	if got.Op != "add" || got.Count != 13 || !near(got.MedianS, 7e-6) || !near(got.P95S, 11e-6) ||
		!near(got.GFlopsPerSec, 0.01) || !near(got.GBPerSec, 0.03) {
		t.Errorf("kernel %+v, want add, 13 times, 7 and 11 us, 0.01 GFLOP/s, 0.03 GB/s", got)
	}
	must.Contain(t, mustRun(t, "kernels", "measured.toml"), "7 us")
}

// TestExecutedRun trains on 200 samples: 3 whole batches of 64 and a short one.
func TestExecutedRun(t *testing.T) {
	t.Chdir(t.TempDir())
	network := []string{"--model", "digits-cnn", "--limit", "200", "--batch", "64"}
	s := decoded[record.Summary](t, mustRun(t, append([]string{"execute", "--epochs", "1", "--json", "--out", "e"}, network...)...))
	if s.Steps != 4 || s.Trained == nil || s.Trained.Samples != 200 || s.Provenance == nil || s.SamplesPerS == nil || s.TestAccuracy == nil {
		t.Errorf("summary %+v; want 4 steps and 200 samples trained", s)
	}
	steps, err := os.ReadFile("e/" + record.StepsFile)
	if err != nil || strings.Count(string(steps), "\n") != 1+4 {
		t.Errorf("steps.csv: want a header and 4 lines (%v)\n%s", err, steps)
	}
	platform := []string{"--platform", "e/platform.toml"}
	mustRun(t, slices.Concat([]string{"plan", "--lowering", "default", "--out", "p"}, network, platform)...)
	sameFiles(t, rundir.GraphFile, "e", "p")
	mustRun(t, slices.Concat([]string{"execute", "--plan", "p/plan.json", "--out", "replayed"}, network, platform)...)
	c := decoded[plan.Comparison](t, mustRun(t, "compare", "p", "replayed", "--json"))
	if c.MovedTasks != 0 || len(c.Kernels) == 0 {
		t.Errorf("%d tasks moved from their plan; %d kernels", c.MovedTasks, len(c.Kernels))
	}
	a := must.Get(record.ReadManifest("e"))(t)
	b := must.Get(record.ReadManifest("replayed"))(t)
	if a.WeightsHash != b.WeightsHash || a.WeightsHash == "" || len(b.Inputs) != 1 {
		t.Errorf("weights %q and %q, want equal; inputs %v, want the plan", a.WeightsHash, b.WeightsHash, b.Inputs)
	}
	wantVerified(t, "e")
	if out := mustRun(t, "rerun", "e", "--out", "again"); strings.Contains(out, "DIFFERENT") || !strings.Contains(out, "weights") {
		t.Errorf("rerun:\n%s", out)
	}
	testReading(t)
}

// testReading reads the executed run e in every way there is.
func testReading(t *testing.T) {
	var k struct{ Kernels []inspect.KernelTime }
	decodeObject(t, mustRun(t, "kernels", "e", "--json"), &k)
	for _, row := range k.Kernels {
		if row.Count < 1 || row.MedianS < 0 || row.P95S < row.MedianS {
			t.Errorf("kernel %+v: want a count, and a median that the 95th percentile does not undercut", row)
		}
	}
	mustRun(t, "plot", "e", "gantt", "--format", "png", "--colour", "phase")
	mustRun(t, "trace", "e")
	mustRun(t, "trace", "e", "--format", "paje")
	for _, name := range []string{"gantt.png", "trace.json", "trace.paje", "compare.svg", record.WeightsFile} {
		if info, err := os.Stat("e/" + name); err != nil || info.Size() == 0 {
			t.Errorf("e/%s: %v", name, err)
		}
	}
	for _, line := range []string{"compare e e --out nowhere", "plot p compare"} { // p is a prediction
		wantRefused(t, line, "")
	}
	trace, err := os.ReadFile("e/trace.json")
	if err != nil || !json.Valid(trace) {
		t.Errorf("trace.json is not JSON (%v)", err)
	}
	for _, path := range []string{"e/.[^l]*", ".*"} { // all but the lock
		if left, _ := filepath.Glob(path); len(left) > 0 {
			t.Errorf("temporary files were left: %v", left)
		}
	}
}

// TestInterruptedBeforeAnything: what ends before it has a plan leaves no directory and says nothing else.
func TestInterruptedBeforeAnything(t *testing.T) {
	t.Chdir(t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, line := range []string{"simulate --platform laptop --model digits-cnn", "plan --platform laptop --model digits-cnn", longSearch} {
		if r := dahl(t, ctx, strings.Fields(line)...); r.code != cli.ExitInterrupted || r.stdout != "" || r.stderr != "dahl: interrupted: context canceled\n" {
			t.Errorf("dahl %s: exit code %d, %s%s", line, r.code, r.stdout, r.stderr)
		}
	}
	if left := listing(t); left != "." {
		t.Errorf("left behind:\n%s", left)
	}
}

// TestPredictionNamesNoVariant: what runs on a machine that has not been measured is
// that machine's choice, not that of the one that simulates it; a run names all.
func TestPredictionNamesNoVariant(t *testing.T) {
	t.Chdir(t.TempDir())
	network := []string{"--model", "digits-cnn", "--batch", "16", "--limit", "32"}
	predict := []string{"simulate", "--platform", "laptop", "--lowering", "default", "--out"}
	variants := func(dir string) []string {
		t.Helper()
		m := must.Get(record.ReadManifest(dir))(t)
		return m.Variants
	}
	mustRun(t, slices.Concat(predict, []string{"open"}, network)...)
	if got := variants("open"); len(got) > 0 {
		t.Errorf("simulated: %q", got)
	}
	mustRun(t, slices.Concat(predict, []string{"asked", "--variant", "ref"}, network)...)
	if got := variants("asked"); len(got) == 0 || slices.ContainsFunc(got, func(l string) bool { return !strings.HasSuffix(l, ": ref") }) {
		t.Errorf("simulated with --variant ref: %q", got)
	}
	mustRun(t, slices.Concat([]string{"execute", "--out", "run"}, network)...)
	if got, want := len(variants("run")), len(variants("asked")); got != want {
		t.Errorf("executed: %d variants, want one for each of the %d calls", got, want)
	}
}
