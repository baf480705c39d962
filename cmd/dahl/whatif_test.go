package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"dahl/dag"
	"dahl/plan/best"
	"dahl/plan/space"
	"dahl/platform"
	"dahl/schedule"
)

// TestWhatIf: two tasks that wait for nothing take 3 and 4 ms on two units of 1 W idle and 2 W busy: 4 ms, and 4 ms · 2 W +
// 7 ms · 1 W = 15 mJ. On one unit they take 7 ms and 14 mJ. A machine without a unit that they can run on is a row
// with the reason, and nothing is written unless asked for.
func TestWhatIf(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "two.toml", twoUnits)
	writeTestFile(t, "one.toml", strings.Replace(twoUnits, "count = 2", "count = 1", 1))
	writeTestFile(t, "other.toml", strings.Replace(strings.Replace(twoUnits, `name = "cpu"`, `name = "chip"`, 1), `kind = "cpu"`, `kind = "emulated"`, 1))
	graph := `{"format": "dahl-graph 1", "name": "both", "buffers": [], "tasks": [
  {"name": "a", "op": "f", "ns": {"cpu": 3000000}}, {"name": "b", "op": "f", "ns": {"cpu": 4000000}}]}`
	writeTestFile(t, "both.json", graph)
	before := listing(t)
	line := strings.Fields("plan --platform two.toml --what-if one.toml --graph both.json --objective time --json")
	rows := []whatIfRow{}
	if err := json.Unmarshal([]byte(mustRun(t, line...)), &rows); err != nil || len(rows) != 2 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for i, want := range []string{"two.toml 0.004 0.015 1 1", "one.toml 0.007 0.014 1.75 0.933"} {
		r := &rows[i]
		if got := fmt.Sprintf("%s %.3g %.3g %.3g %.3g", r.Platform, r.StepS, r.StepJ, r.TimeRatio, r.EnergyRatio); got != want || !r.Proven || r.Bound != r.StepS {
			t.Errorf("%+v is %s, want %s, proven", r, got, want)
		}
	}
	if after := listing(t); after != before {
		t.Errorf("it left something behind:\n%s", after)
	}
	out := mustRun(t, strings.Fields("plan --what-if one.toml other.toml --graph both.json --out tables")...)
	if !strings.Contains(out, "other.toml cannot: ") || !strings.Contains(out, "14 mJ") {
		t.Errorf("with a machine that cannot:\n%s", out)
	}
	if table := readTable(t, filepath.Join("tables", whatIfFile)); len(table) != 2 || table[0]["energy_ratio"] != "1" || table[1]["error"] == "" {
		t.Errorf("%v", table)
	}
	if entries, err := os.ReadDir("tables"); err != nil || len(entries) != 1 {
		t.Errorf("tables: %v, %v", entries, err)
	}
}

// TestWhatIfEnded: wherever a comparison of machines ends, it prints those that have a plan, and writes them.
func TestWhatIfEnded(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "two.toml", twoUnits)
	writeTestFile(t, "one.toml", strings.Replace(twoUnits, "count = 2", "count = 1", 1))
	writeTestFile(t, "two.json", twoTasks)
	o, seen := options{whatIf: []string{"two.toml", "one.toml"}, Graph: "two.json", Objective: "time", Budget: 100, DType: "float32", Policy: bestPolicy, Steps: 2}, map[int]bool{}
	for n, ended := 1, true; ended; n++ {
		ctx, stdout := newEndsAtLook(t, n), strings.Builder{}
		dir := fmt.Sprint("tables", n)
		err := compareMachines(ctx, &stdout, &o, &output{dir: dir, json: true})
		if ended = ctx.Context.Err() != nil; errors.Is(err, context.Canceled) != ended {
			t.Errorf("after %d looks: %v", n, err)
		}
		var rows []whatIfRow
		if stdout.Len() > 0 {
			if err := json.Unmarshal([]byte(stdout.String()), &rows); err != nil {
				t.Fatal(err)
			}
			if table := readTable(t, filepath.Join(dir, whatIfFile)); len(table) != len(rows) {
				t.Errorf("after %d looks: %d rows, and %d printed", n, len(table), len(rows))
			}
		}
		for _, r := range rows {
			if r.Error != "" || r.StepS <= 0 {
				t.Errorf("after %d looks: %+v", n, r)
			}
		}
		seen[len(rows)] = true
	}
	if len(seen) != 3 {
		t.Errorf("it printed %v of 2 machines", seen)
	}
}

// TestTogether: of plans on a processor and another device, each is of the kind of the devices that have a task, whatever
// the set. Of processors alone 5 ms and 10 mJ are the least, of others alone 4 ms and 20 mJ, of both 3 ms (25 % less than 4)
// and 12 mJ (20 % more than 10). What takes longer than the deadline does not count.
func TestTogether(t *testing.T) {
	p, err := platform.Parse([]byte(twoUnits+`[[device]]
name = "chip"
kind = "emulated"
memory = "ram"
count = 1
power = { idle = "1 W", busy = "2 W" }
`), "p.toml")
	if err != nil {
		t.Fatal(err)
	}
	tried := func(devices string, ms time.Duration, joules float64, busy ...int) best.Try {
		order := make([][]dag.TaskID, 3)
		for _, w := range busy {
			order[w] = []dag.TaskID{0}
		}
		return best.Try{Choice: space.Choice{Devices: devices}, Makespan: ms * time.Millisecond, Joules: joules, Plan: &schedule.Plan{Order: order}}
	}
	all := []best.Try{tried("cpu:2", 5, 0.018, 0, 1), tried("", 6, 0.01, 0), tried("chip", 4, 0.02, 1), tried("", 3, 0.013, 1, 2), tried("cpu:1,chip", 4, 0.012, 0, 1), tried("", 9, 0.001, 0, 2)}
	kinds, err := bestOfKinds(p, all, 8*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	want := "is cpu + gpu better than either alone? in time yes: 3 ms per step, and 4 ms on gpu alone (-25 %); in joules no: 12 mJ per step, and 10 mJ on cpu alone (+20 %)"
	if got := together(kinds); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	kinds = slices.DeleteFunc(kinds, func(k whatIfKind) bool { return k.Kind == bothKinds })
	if got := together(kinds); strings.Count(got, "it is not known") != 2 {
		t.Errorf("without plans of both: %s", got)
	}
}

// TestWhatIfIsNoWorseThanSimulate: with a budget for hardly any plan a row is what simulate takes by default, on all devices and on
// each kind alone. Simulate prints the mean of nine of ten steps, and the comparison counts six: they may differ by a few percent.
func TestWhatIfIsNoWorseThanSimulate(t *testing.T) {
	t.Chdir(t.TempDir())
	simulate := func(devices string) float64 {
		var s summary
		decodeObject(t, mustRun(t, "simulate", "--platform", "emulated", "--model", "mlp", "--devices", devices, "--json", "--out", "s"), &s)
		return s.StepS
	}
	r := dahl(t, t.Context(), "plan", "--what-if", "emulated", "--model", "mlp", "--objective", "time", "--budget", "50 nodes", "--json")
	var rows []whatIfRow
	if err := json.Unmarshal([]byte(r.stdout), &rows); err != nil || len(rows) != 1 || len(rows[0].Kinds) != 3 {
		t.Fatalf("%+v, %v", rows, err)
	}
	for devices, step := range map[string]float64{"": float64(rows[0].StepS), "cpu": rows[0].Kinds[0].Fastest.StepS, "gpu": rows[0].Kinds[1].Fastest.StepS} {
		if usual := simulate(devices); step > 1.03*usual {
			t.Errorf("on %q %v s, and simulate takes %v", devices, step, usual)
		}
	}
	// Two equal cores and a GPU: none, one or both, without the GPU or with it, and not nothing.
	if want := " tilings on 5 sets of devices"; !strings.HasSuffix(rows[0].BoundOf, want) {
		t.Errorf("the bound is of %q", rows[0].BoundOf)
	}
}

// TestPlanIsNoWorseThanSimulate: with a budget for one node a plan takes no longer than what simulate takes by default, which is one GPU
// of four. All devices together, with which the search begins, take twice that.
func TestPlanIsNoWorseThanSimulate(t *testing.T) {
	t.Chdir(t.TempDir())
	var planned, usual summary
	decodeObject(t, mustRun(t, strings.Fields("plan --platform nvlink --model lenet5 --objective time --budget 1node --json --out p")...), &planned)
	decodeObject(t, mustRun(t, strings.Fields("simulate --platform nvlink --model lenet5 --json --out s")...), &usual)
	if planned.StepS > 1.001*usual.StepS {
		t.Errorf("a step takes %v s, and %v s by default", planned.StepS, usual.StepS)
	}
}

// TestSearchSaysHowLong: without a terminal a long search says in a line how long it may take, and a time that is given is said
// beside what was taken. Of a graph that is searched at once there is nothing to say.
func TestSearchSaysHowLong(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "two.toml", twoUnits)
	writeTestFile(t, "two.json", twoTasks)
	line := strings.Fields("plan --platform two.toml --graph two.json --objective time --out p")
	for more, want := range map[string]string{
		"--steps 1": "", "--steps 2": "dahl: the search looks at up to 200,000 nodes, which takes ", "--steps 2 --budget 9nodes": "", "--steps 2 --budget 1h": "dahl: the search may take 1h0m0s\n",
	} {
		r := dahl(t, t.Context(), append(line, strings.Fields(more)...)...)
		if r.code != 0 || !strings.HasPrefix(r.stderr, want) || strings.Count(r.stderr, "\n") != min(1, len(want)) {
			t.Errorf("%s: exit code %d, %q, want %q", more, r.code, r.stderr, want)
		}
		if said := strings.Contains(r.stdout, "\nbudget    of 1h0m0s it took "); said != strings.HasSuffix(more, "1h") {
			t.Errorf("%s:\n%s", more, r.stdout)
		}
	}
}
