package main

import (
	"math"
	"strings"
	"testing"

	"dahl/energy"
	"dahl/plan"
	"dahl/train"
)

// The three tasks of TestCompareDevices on both devices take 25 us: the processor is busy
// with 5 W, the GPU 20 us with 7 W and 5 us idle with 3 W, 6.2 W on average. By their
// meters they drew 60 J in 4 s, 15 W, and 124 J in 20 s, 6.2 W; of the fan nothing is
// predicted, and what a meter has not counted yet is no measurement.
func TestMeteredSteps(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "unlike.toml", unlikePlatform)
	task := `{"name": "NAME", "ns": {"cpu": 25000, "emulated": 10000}}`
	writeTestFile(t, "three.json", `{"format": "dahl-graph 1", "tasks": [`+
		strings.Replace(task, "NAME", "a", 1)+","+strings.Replace(task, "NAME", "b", 1)+","+strings.Replace(task, "NAME", "c", 1)+"]}")
	readings := []energy.Reading{{Of: train.ProcessorsMeter, Joules: 60, Seconds: 4}, {Of: "g0", Joules: 124, Seconds: 20},
		{Of: "fan", Joules: 1, Seconds: 1}, {Of: "g0", Seconds: 1}}
	for devices, want := range map[string]string{
		"":       "processors 0.000375 J per step (predicted 0.000125 J, -66.7 %), g0 0.000155 J per step (predicted 0.000155 J, +0.0 %)",
		"cpu,g0": "g0 0.000155 J per step (predicted 0.000155 J, +0.0 %)", // units may have been left out
	} {
		w, err := simulatedWorkload(t.Context(), &options{Platform: "unlike.toml", Graph: "three.json", Devices: devices, Policy: "heft", DType: "float32", Steps: 1})
		if err != nil {
			t.Fatal(err)
		}
		result, err := w.Predict(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		predicted, measured := w.figures(result), w.figures(result, readings...)
		steps := plan.MeteredSteps(&predicted, &measured)
		if got := meteredText(steps); got != want || math.Abs(steps[len(steps)-1].ErrorPercent) > 1e-9 {
			t.Errorf("--devices %q: %s; want %s", devices, got, want)
		}
	}
}
