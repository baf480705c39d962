package plan

import (
	"math"
	"reflect"
	"testing"

	"dahl/simulate"
)

// TestWaits: the processor makes x in 25 us, 1000 bytes take 1 us to the GPU, which uses
// them for 10 us. So the GPU waits 25 us for a task and 1 us for the transfer, the
// processor has no work for 36 - 25 us, and the critical path has 35 us of tasks and 1 us
// of the copy. A second step begins when x, which is one buffer, has been used, and takes
// as long: the processor waits 11 us before it and has no work for 11 us after it.
func TestWaits(t *testing.T) {
	d := decided(t, `"buffers": [{"name": "x", "bytes": 1000}],
 "tasks": [
  {"name": "make", "writes": ["x"], "ns": {"cpu": 25000}},
  {"name": "use", "reads": ["x"], "ns": {"emulated": 10000}}]`)
	moved := []TransferTime{{"x@g0.mem", "ram", 1e-6}}
	path := PathParts{TasksS: 35e-6, CopiesS: 1e-6, Copies: moved}
	for steps, perStep := range map[int]map[string]float64{
		1: {"dependence": 25e-6, "transfer": 1e-6, "no work left": 11e-6},
		2: {"dependence": (25e-6 + 25e-6 + 11e-6) / 2, "transfer": 1e-6, "no work left": 11e-6 / 2},
	} {
		got, want := WaitsOf(d.Problem(0, steps, false), simulated(t, d, steps, simulate.Options{})), &Waits{PerStepS: perStep, Transfers: moved, Path: path}
		if !alike(got, want) {
			t.Errorf("%d steps: %+v, want %+v", steps, got, want)
		}
	}
}

// alike compares up to the rounding of sums.
func alike(a, b *Waits) bool {
	for cause, x := range a.PerStepS {
		if !near(x, b.PerStepS[cause]) {
			return false
		}
	}
	return len(a.PerStepS) == len(b.PerStepS) && near(a.Path.TasksS, b.Path.TasksS) && near(a.Path.CopiesS, b.Path.CopiesS) &&
		near(a.Path.WaitS, b.Path.WaitS) && reflect.DeepEqual(a.Transfers, b.Transfers) && reflect.DeepEqual(a.Path.Copies, b.Path.Copies)
}

func near(x, y float64) bool { return math.Abs(x-y) < 1e-12 }
