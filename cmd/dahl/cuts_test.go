package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dahl/cmd/dahl/record"
	"dahl/cmd/dahl/words"
	"dahl/plan"
)

// TestPrintCuts: 12 us instead of 10 are 20 % more, and 1 mJ is 0.5 mJ less one half; what is equal has no sign of its own. Of ten
// layers the two that take least are left to the file.
func TestPrintCuts(t *testing.T) {
	row := func(layer, cut string, us int, joules float64) plan.CutCost {
		return plan.CutCost{Layer: layer, Device: "one", Cut: cut, Work: plan.Work{Forward: time.Duration(us) * time.Microsecond, Joules: joules}}
	}
	cuts := []plan.CutCost{row("z", plan.Uncut, 1, 1), row("conv1", plan.Uncut, 10, 1e-3), row("conv1", "samples", 10, 1e-3), row("conv1", "rows", 12, 0.5e-3), row("y", plan.Uncut, 2, 1)}
	for _, layer := range strings.Fields("a b c d e f g") {
		cuts = append(cuts, row(layer, plan.Uncut, 3, 1))
	}
	var out bytes.Buffer
	words.PrintCuts(&out, cuts)
	lines := strings.Split(out.String(), "\n")
	want := "conv1        one            10 us      1 mJ        +0 %, +0 %                 -                 -      +20 %, -50 %                 -"
	if lines[2] != want || len(lines) != 2+8+1+1 || lines[10] != "2 more layers in cuts.csv" {
		t.Errorf("printed\n%swant\n%s", out.String(), want)
	}
}

// TestCutsInColumns: long names of layers and large numbers widen their columns, so that all lines end where the first does.
func TestCutsInColumns(t *testing.T) {
	row := func(layer, device, cut string, us int, joules float64) plan.CutCost {
		return plan.CutCost{Layer: layer, Device: device, Cut: cut, Work: plan.Work{Forward: time.Duration(us) * time.Microsecond, Joules: joules}}
	}
	var out bytes.Buffer
	words.PrintCuts(&out, []plan.CutCost{row("layer1.0.downsample.1", "cpu0,cpu1,cpu2", plan.Uncut, 1, 1e-3), row("layer1.0.downsample.1", "cpu0,cpu1,cpu2", "columns", 1001, 123),
		row("fc", "gpu", plan.Uncut, 10, 1e-3)})
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")[1:]
	for _, line := range lines {
		if len(line) != len(lines[0]) {
			t.Errorf("%d columns, and %d above\n%s", len(line), len(lines[0]), out.String())
		}
	}
}

// With --cuts the plan of a network has the table in its words, its summary and a file of as many lines; a graph file has no layers to cut.
func TestPlanHasCuts(t *testing.T) {
	t.Chdir(t.TempDir())
	args := []string{"plan", "--cuts", "--platform", "emulated", "--model", "digits-cnn", "--batch", "7", "--out", "p"}
	out := mustRun(t, args...)
	s := decoded[record.Summary](t, mustRun(t, append(args, "--json")...))
	file, err := os.ReadFile(filepath.Join("p", words.CutsFile))
	if lines := strings.Count(string(file), "\n"); err != nil || len(s.Cuts) == 0 || lines != 1+len(s.Cuts) {
		t.Errorf("%v: %d lines, and %d cuts in the summary", err, lines, len(s.Cuts))
	}
	if !strings.Contains(out, "\ncuts  ") || !strings.Contains(out, "\nfc1 ") {
		t.Errorf("no table in\n%s", out)
	}
	wantRefused(t, "plan --cuts --platform emulated --graph g.json", "name one with --model")
}
