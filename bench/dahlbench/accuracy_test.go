package main

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dahl/plan"
	"dahl/platform"
	"dahl/schedule"
)

func testRow(network string, batch int, predicted, measured time.Duration) *accuracyRow {
	return &accuracyRow{accuracyCase: accuracyCase{network, batch, 2, accuracyLowerings[0]}, predicted: predicted, measured: measured, spread: 0.04, busy: 0.01, Comparison: &plan.Comparison{}}
}

// TestAccuracySummary: four rows with errors of 10 %, 0, 2 % and 50 %. Sorted 0, 2, 10,
// 50: the median as quantile counts is the third, 10 %, the 90th percentile the fourth.
// Within the larger of 3 % and the spread of 4 % are 0 and 2 %. Of net, 100, 200 and 105
// us were measured: 100 and 105 are too close, (100, 200) and (105, 200) count, and the
// first is ordered wrong if 200 was predicted as 100 and 100 as 110.
func TestAccuracySummary(t *testing.T) {
	us := time.Microsecond
	var table accuracyTable
	for _, r := range []*accuracyRow{testRow("net", 32, 110*us, 100*us), testRow("net", 64, 100*us, 200*us), testRow("net", 128, 105*us, 105*us), testRow("other", 32, 102*us, 100*us)} {
		if err := table.add(r); err != nil {
			t.Fatal(err)
		}
	}
	got := table.summary()
	for _, want := range []string{"4 rows", "median error 10.0 %", "90th percentile 50.0 %", "median spread of repeated runs 4.0 %", "2 rows within 3 %", "busy time 1.0 %",
		"Of 2 pairs", "0 (0.0 %) are ordered right"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in: %s", want, got)
		}
	}
	if got := new(accuracyTable).summary(); got != "" {
		t.Errorf("of nothing: %s", got)
	}
}

// TestAccuracyTableGoesOn: rows that a file holds are found again, with their kernels,
// and a file of other options is refused.
func TestAccuracyTableGoesOn(t *testing.T) {
	a := accuracyOptions{dtype: "float32", perRow: time.Second, repeats: 3, out: filepath.Join(t.TempDir(), "table.md")}
	table, err := a.openTable()
	if err != nil {
		t.Fatal(err)
	}
	row := testRow("net", 32, 1500, 2500)
	row.Kernels = []plan.KernelComparison{{Op: "conv2d", Shape: "3;5", Variant: "go", Share: 0.5}, {Op: "add", Share: 0.01}}
	if err := table.add(row); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(a.out)
	if err != nil {
		t.Fatal(err)
	}
	again, err := a.openTable()
	if err != nil {
		t.Fatal(err)
	}
	if line := again.row(&row.accuracyCase); line != row.format() {
		t.Errorf("the row reads back as %q", line)
	}
	other := row.accuracyCase
	other.batch = 3
	if again.row(&other) != "" {
		t.Error("a row of batch 3 was found")
	}
	if again.text() != string(written) || len(again.kernels) != 1 {
		t.Errorf("read back and written again:\n%s\nfirst:\n%s", again.text(), written)
	}
	again.rows = nil // its line was deleted
	if err := again.add(row); err != nil {
		t.Fatal(err)
	}
	if again.text() != string(written) {
		t.Errorf("measured again:\n%s\nfirst:\n%s", again.text(), written)
	}
	a.repeats = 4
	if _, err := a.openTable(); err == nil || !strings.Contains(err.Error(), "--force") {
		t.Errorf("other options: error %v", err)
	}
	a.force = true
	if fresh, err := a.openTable(); err != nil || len(fresh.rows) != 0 {
		t.Errorf("forced: %v, error %v", fresh, err)
	}
}

// TestBusyError: predicted, worker 0 is busy 10 ns in each of two steps and worker 1
// 6 and 10, on average 8. Measured in two runs, 10 and 30, on average 20, and 10 and 10:
// errors of 10/20 − 1 and 8/10 − 1, the larger is 0.5. A worker that never ran has none.
func TestBusyError(t *testing.T) {
	span := func(w platform.WorkerID, ns time.Duration) schedule.Span {
		return schedule.Span{Worker: w, Start: 100, End: 100 + ns}
	}
	predicted := &schedule.Schedule{Steps: 2, Spans: []schedule.Span{span(0, 10), span(0, 10), span(1, 6), span(1, 10)}}
	measured := []*schedule.Schedule{{Steps: 1, Spans: []schedule.Span{span(0, 10), span(1, 10)}}, {Steps: 1, Spans: []schedule.Span{span(0, 30), span(1, 10)}}}
	if got := busyError(predicted, measured, 3); math.Abs(got-0.5) > 1e-12 {
		t.Errorf("%g, want 0.5", got)
	}
}
