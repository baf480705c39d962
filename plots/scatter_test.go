package plots

import (
	"slices"
	"strings"
	"testing"
	"time"

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
	charts := newGanttStack([]string{"predicted", "measured"}, predicted, measured).charts
	for _, k := range pairKernels(charts[0], charts[1]) {
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

// TestTableSumsSpans: with one call of an operation a hundred times as long as the others,
// the median of its calls says nothing, and the table still has what the rows above it show:
// per step, the spans of each run over its own number of steps.
func TestTableSumsSpans(t *testing.T) {
	predicted, measured := tinyRun(t, schedule.Simulated, 1), tinyRun(t, schedule.Measured, 1.5)
	s := measured.Schedule
	long := &s.Spans[len(s.Spans)-1] // the update, which ends the run
	s.Makespan += 100 * (long.End - long.Start)
	long.End += 100 * (long.End - long.Start)
	busy := func(s *schedule.Schedule) (sum time.Duration) {
		for _, span := range s.Spans {
			sum += span.End - span.Start
		}
		return sum
	}
	charts := newGanttStack([]string{"predicted", "measured"}, predicted, measured).charts
	table := opTable{opTotals(charts[0], charts[1]), predicted.Schedule.Steps, s.Steps}
	all := table.all()
	if all.predicted != busy(predicted.Schedule) || all.measured != busy(s) || all.calls != len(s.Spans) {
		t.Errorf("all kernels: %+v, want %v and %v of %d calls", all, busy(predicted.Schedule), busy(s), len(s.Spans))
	}
	// Of 10 tasks and 2 steps, 60 us of sgd predicted, and measured 90 us and 101 times 90.
	sgd := table.ops[slices.IndexFunc(table.ops, func(o opTotal) bool { return o.op == "sgd" })]
	if got, want := table.line(sgd), []string{"1", "60 us", "4.59 ms", "-98.7 %"}; !slices.Equal(got, want) {
		t.Errorf("sgd: %q, want %q", got, want)
	}
	copies := slices.ContainsFunc(table.ops, func(o opTotal) bool { return o.copies })
	if !copies {
		t.Error("the table has no copies")
	}
}

// TestTitlesSayWhatIsShown: which steps of how many, and what joules rest on.
func TestTitlesSayWhatIsShown(t *testing.T) {
	r := tinyRun(t, schedule.Measured, 1)
	const part = "steps 5 to 6 of 7, in epoch 2 of 3"
	for name, want := range map[string][]string{
		"gantt": {part, ">step 5<", ">step 6<"}, "memory": {part, "live peak", "reserved 150 kB"},
		"power": {part, "power and energy (modelled, watts guessed)", "most by gpu"}, "compare": {part, "2 steps: predicted"},
	} {
		f, _ := FigureByName(name)
		svg := string(drawn(t, f, "svg", Input{Run: r, Predicted: r}))
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
