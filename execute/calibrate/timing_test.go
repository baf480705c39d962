package calibrate

import (
	"context"
	"testing"
	"time"

	"dahl/platform"
	"dahl/schedule"
)

// TestTimingPerTask: in 2 steps a core runs 7 tasks, one GPU 6 and the other 2, so that the
// busiest GPU has 3 in a step. Recorded steps of 1300 ns are 300 longer than others: 100
// ns by task. Without tasks on a GPU there is nothing to tell.
func TestTimingPerTask(t *testing.T) {
	p := node(t, 1, 2)
	s := &schedule.Schedule{Steps: 2, Period: 1300}
	for w, n := range []int{7, 6, 2} {
		for range n {
			s.Spans = append(s.Spans, schedule.Span{Worker: platform.WorkerID(w)})
		}
	}
	if per, ok := timingPerTask(p, s, 1000); per != 100 || !ok {
		t.Errorf("%v, %v; want 100 ns", per, ok)
	}
	s.Spans = s.Spans[:7]
	if per, ok := timingPerTask(p, s, 1000); ok {
		t.Errorf("%v by task of a GPU that runs none", per)
	}
}

// TestPutTiming: the median of five turns, 40 ns, is the GPU's; where a quarter of the turns
// were faster with a record, it is nothing, and never the processor's. Without a turn what
// is known stays.
func TestPutTiming(t *testing.T) {
	for _, c := range []struct {
		kind   string
		turns  []time.Duration
		before time.Duration
		want   time.Duration
	}{
		{"cuda", []time.Duration{900, -7, 40, 31, 53}, 5, 40},
		{"cuda", []time.Duration{900, -7, 40, 31}, 5, 0},
		{"cuda", nil, 5, 5},
		{"cpu", []time.Duration{40}, 0, 0},
	} {
		var st StepTimes
		st.timing = c.turns
		d := platform.Device{Name: "d", Kind: c.kind, Timing: c.before}
		if st.PutInto(&d); d.Timing != c.want {
			t.Errorf("%s, turns %v: %v, want %v", c.kind, c.turns, d.Timing, c.want)
		}
	}
}

// TestCalibrateTiming runs on an emulated GPU: each turn gives one difference, and at most
// the steps that the options say run at once, for which the caller has data.
func TestCalibrateTiming(t *testing.T) {
	r := runner(t, node(t, 1, 1), 1)
	var st StepTimes
	for _, steps := range []int{2, 13} {
		if err := Timing(context.Background(), r, InSituOptions{Steps: steps}, &st); err != nil {
			t.Fatal(err)
		}
	}
	if len(st.timing) != 2*timingTurns || len(st.runs) != 0 {
		t.Errorf("differences %v of %d turns, and %d runs whose calls are known", st.timing, 2*timingTurns, len(st.runs))
	}
}
