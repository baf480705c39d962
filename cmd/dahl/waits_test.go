package main

import (
	"math"
	"reflect"
	"strings"
	"testing"
)

// TestWaits: the processor makes x in 25 us, 1000 bytes take 1 us to the GPU, which uses
// them for 10 us. So the GPU waits 25 us for a task and 1 us for the transfer, the
// processor has no work for 36 - 25 us, and the critical path has 35 us of tasks and 1 us
// of the copy. A second step begins when x, which is one buffer, has been used, and takes
// as long: the processor waits 11 us before it and has no work for 11 us after it.
func TestWaits(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "unlike.toml", unlikePlatform)
	writeTestFile(t, "moving.json", `{"format": "dahl-graph 1",
 "buffers": [{"name": "x", "bytes": 1000}],
 "tasks": [
  {"name": "make", "writes": ["x"], "ns": {"cpu": 25000}},
  {"name": "use", "reads": ["x"], "ns": {"emulated": 10000}}]}`)
	line := []string{"simulate", "--platform", "unlike.toml", "--graph", "moving.json", "--out", "out", "--steps"}
	var s summary
	decodeObject(t, mustRun(t, append(line, "1", "--json")...), &s)
	want := &waitSummary{
		PerStepS:  map[string]float64{"dependence": 25e-6, "transfer": 1e-6, "no work left": 11e-6},
		Transfers: []transferTime{{"x@own", "ram", 1e-6}},
		Path:      pathSummary{TasksS: 35e-6, CopiesS: 1e-6, Copies: []transferTime{{"x@own", "ram", 1e-6}}},
	}
	if !alike(s.Waits, want) {
		t.Errorf("one step: %+v, want %+v", s.Waits, want)
	}
	decodeObject(t, mustRun(t, append(line, "2", "--json")...), &s)
	want = &waitSummary{
		PerStepS:  map[string]float64{"dependence": (25e-6 + 25e-6 + 11e-6) / 2, "transfer": 1e-6, "no work left": 11e-6 / 2},
		Transfers: []transferTime{{"x@own", "ram", 1e-6}},
		Path:      pathSummary{TasksS: 35e-6, CopiesS: 1e-6, Copies: []transferTime{{"x@own", "ram", 1e-6}}},
	}
	if !alike(s.Waits, want) {
		t.Errorf("two steps: %+v, want %+v", s.Waits, want)
	}
	if out := mustRun(t, append(line, "2", "--verbose")...); !strings.Contains(out, "; 1 us for x@own from ram") || !strings.Contains(out, "; 1 us in x@own from ram") {
		t.Errorf("two steps: %s", out)
	}
}

// alike compares up to the rounding of sums.
func alike(a, b *waitSummary) bool {
	near := func(x, y float64) bool { return math.Abs(x-y) < 1e-12 }
	for cause, x := range a.PerStepS {
		if !near(x, b.PerStepS[cause]) {
			return false
		}
	}
	return len(a.PerStepS) == len(b.PerStepS) && near(a.Path.TasksS, b.Path.TasksS) && near(a.Path.CopiesS, b.Path.CopiesS) &&
		near(a.Path.WaitS, b.Path.WaitS) && reflect.DeepEqual(a.Transfers, b.Transfers) && reflect.DeepEqual(a.Path.Copies, b.Path.Copies)
}
