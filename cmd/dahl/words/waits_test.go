package words

import (
	"strings"
	"testing"

	"dahl/plan"
)

// TestWaitsText: only the three longest copies are named, and where none is nothing is said.
func TestWaitsText(t *testing.T) {
	var moved []plan.TransferTime
	for i, name := range []string{"a", "b", "c", "d"} {
		moved = append(moved, plan.TransferTime{Buffer: name + "@own", From: "ram", StepS: float64(7-i) * 1e-6})
	}
	var out strings.Builder
	PrintWaits(&out, &plan.Waits{PerStepS: map[string]float64{"dependence": 25e-6, "transfer": 1e-6, "no work left": 11e-6}, Transfers: moved,
		Path: plan.PathParts{TasksS: 35e-6, CopiesS: 3e-6}})
	want := `waits     per step of all workers: 25 us for a predecessor, 1 us for a transfer, 0 ns for dispatch, 11 us without work; 7 us for a@own from ram, 6 us for b@own from ram, 5 us for c@own from ram, …
path      per step 35 us in tasks, 3 us in copies, 0 ns between them
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", &out, want)
	}
}
