package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dahl/cmd/cli"
	"dahl/platform"
	"dahl/plots"
	"dahl/train"
)

// Predicted 3, 2, 4 ms, measured 5, 4, 3 ms: the prediction takes the second, which
// took 4 ms, a third more than the best. As rates of equal batches it is the same.
func TestCurveTable(t *testing.T) {
	ms := time.Millisecond
	for _, y := range []plots.Quantity{plots.StepTime, plots.Rate} {
		c := curveBench{y: y, repeats: 1}
		for i, times := range [][2]time.Duration{{3 * ms, 5 * ms}, {2 * ms, 4 * ms}, {4 * ms, 3 * ms}} {
			w := &train.Workload{Options: train.Options{Batch: 64}, Platform: &platform.Platform{}}
			c.points = append(c.points, curvePoint{x: i + 1, w: w, predicted: times[0], measured: []time.Duration{times[1]}})
		}
		predicted, measured, cost := c.choice(c.figure())
		if predicted.x != 2 || measured.x != 3 {
			t.Errorf("%s: best by prediction %d, by measurement %d; want 2 and 3", y, predicted.x, measured.x)
		}
		if !(cost > 0.333 && cost < 0.334) {
			t.Errorf("%s: the prediction costs %v, want 1/3", y, cost)
		}
	}
}

// A short run over two batches writes its table and both pictures.
func TestBenchBatch(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(t.TempDir())
	if err := os.WriteFile("small.toml", []byte(smallNetwork), 0o666); err != nil {
		t.Fatal(err)
	}
	code, out, stderr := run(t, "batch", "--model", "small.toml", "--batches", "16,8", "--time", "5ms", "--repeats", "1", "--workers", "1", "--out", dir)
	if code != cli.ExitOK {
		t.Fatal(stderr)
	}
	if !strings.Contains(out, "| 8 |") || !strings.Contains(out, "Best by prediction") {
		t.Errorf("the table:\n%s", out)
	}
	for _, name := range []string{"batch.md", "batch.svg", "batch.png"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}
