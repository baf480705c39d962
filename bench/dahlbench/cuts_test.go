package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"dahl/cmd/cli"
	"dahl/dag"
	"dahl/plan/space"
	"dahl/plan/tiling"
)

// A step of 2 ms is shorter than one of 3 ms, and 3.5 kB are 0.0035 MB.
func TestCutRow(t *testing.T) {
	row := func(ms int) *cutRow {
		return &cutRow{network: "mlp", cut: "samples", planRun: planRun{choice: space.Choice{Devices: "gpu0", Tiles: tiling.InParts(2, dag.AlongSamples)}, span: time.Duration(ms) * time.Millisecond, joules: 0.004, movedBytes: 3500, peakBytes: 2e6}}
	}
	rows := []*cutRow{row(3), row(2)}
	for i, want := range []string{"| mlp | samples | 3 | 4 | 0.0035 | 2 | gpu0, tiles 2 parts of the batch |", "| mlp | samples | **2** | 4 | 0.0035 | 2 | gpu0, tiles 2 parts of the batch |"} {
		if got := rows[i].format(rows); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// A network of dense layers has no rows to cut. The table has a row for each of the others, and the file what was printed.
func TestCutsTable(t *testing.T) {
	t.Chdir(t.TempDir())
	code, out, stderr := run(t, strings.Fields("cuts --networks mlp --platforms nvlink --batch 7 --nodes 300 --devices gpu0 --out table.md")...)
	if code != cli.ExitOK {
		t.Fatalf("exit code %d, %s\n%s", code, stderr, out)
	}
	for cut, want := range map[string]int{wholeCut: 1, "samples": 1, "outputs": 1, "inputs": 1, "rows": 0, mixture: 1} {
		if got := strings.Count(out, "| mlp | "+cut+" |"); got != want {
			t.Errorf("%d rows of %s, want %d, in\n%s", got, cut, want, out)
		}
	}
	if file, err := os.ReadFile("table.md"); err != nil || !strings.HasSuffix(string(file), out) {
		t.Errorf("%v: the file has\n%s\nprinted was\n%s", err, file, out)
	}
}
