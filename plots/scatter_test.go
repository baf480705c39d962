package plots

import (
	"strings"
	"testing"

	"dahl/schedule"
)

// TestPairs: in a run whose tasks and copies take three halves of what was predicted, each
// pair of medians is off by that, and copies stand beside kernels, by way and size.
func TestPairs(t *testing.T) {
	predicted, measured := tinyRun(t, schedule.Simulated, 1), tinyRun(t, schedule.Measured, 1.5)
	measured.Schedule.Transfers = append([]schedule.Transfer(nil), predicted.Schedule.Transfers...)
	for i := range measured.Schedule.Transfers {
		m := &measured.Schedule.Transfers[i]
		m.End += (m.End - m.Start) / 2
	}
	copies, calls := 0, 0
	colours := colourings(predicted, measured)
	for _, k := range pairKernels(newChart(predicted, colours[0]), newChart(measured, colours[1])) {
		if off := k.measured / k.predicted; off < 1.49 || off > 1.51 {
			t.Errorf("%s %s: %v predicted, %v measured; want three halves", k.op, k.shape, k.predicted, k.measured)
		}
		if strings.HasPrefix(k.op, "copy ") != (k.device == copyDevice) {
			t.Errorf("%q is of device %d", k.op, k.device)
		}
		if k.device == copyDevice {
			copies++
			calls += k.calls
		}
	}
	if copies < 2 || calls != len(predicted.Schedule.Transfers) {
		t.Errorf("%d kinds of copies, %d in all; the schedule has %d", copies, calls, len(predicted.Schedule.Transfers))
	}
}

// TestTableOfOperations: 60 us of one call predicted and 90 and 101 times 90 us measured in 2 steps are 4.59 ms a step, an error of
// 100·(60/4590 − 1). What is missing in a world has no error.
func TestTableOfOperations(t *testing.T) {
	table := opTable{Compared: &Compared{}, steps: 2}
	for want, o := range map[string]*Operation{
		"1|60 us|4.59 ms|-98.7 %": {Name: "sgd", Calls: 1, PredictedS: 60e-6, MeasuredS: (90e-6 + 101*90e-6) / 2},
		"0.5|0 ns|3 us|-":         {Name: "copy ram to own", Calls: 0.5, MeasuredS: 3e-6},
	} {
		if got := strings.Join(table.cells(o), "|"); got != want {
			t.Errorf("%s: %q, want %q", o.Name, got, want)
		}
	}
}

// TestTitlesSayWhatIsShown: which steps of how many, and what joules rest on.
func TestTitlesSayWhatIsShown(t *testing.T) {
	r := tinyRun(t, schedule.Measured, 1)
	const part = "steps 5 to 6 of 7, in epoch 2 of 3"
	for name, want := range map[string][]string{
		"gantt": {part, ">step 5<", ">step 6<"}, "memory": {part, "live peak", "reserved 150 kB"},
		"power": {part, "power and energy (modelled, watts guessed)", "most by gpu"}, "compare": {"what is compared", "sum of all"},
	} {
		f, _ := FigureByName(name)
		svg := string(drawn(t, f, "svg", Input{Run: r, Predicted: r, Compared: comparedRuns()}))
		for _, w := range want {
			if !strings.Contains(svg, w) {
				t.Errorf("%s lacks %q", name, w)
			}
		}
	}
}

// TestFurthest: what is off by 1 in 300 calls comes before what is off by 200 in one, and six are enough.
func TestFurthest(t *testing.T) {
	kernels := []kernelPair{{kernelKey{op: "exact"}, 1000, 5, 5}, {kernelKey{op: "once"}, 1, 100, 300}, {kernelKey{op: "often"}, 300, 2, 1}}
	kernels = append(kernels, make([]kernelPair, 5)...)
	got := furthest(kernels)
	if len(got) != 6 || got[0].op != "often" || got[1].op != "once" {
		t.Errorf("%v, want often, once and four more", got)
	}
}
