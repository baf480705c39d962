package plots

import (
	"slices"
	"strings"
	"testing"
	"time"

	"dahl/must"
	"dahl/plots/paper"
	"dahl/schedule"
)

// lengthenedRun is largeRun with steps that follow each other and take so many times their length.
func lengthenedRun(t *testing.T, factors ...time.Duration) *Run {
	t.Helper()
	r := largeRun(t, 60*len(factors), 3, len(factors), 5)
	s, at := r.Schedule, time.Duration(0)
	for k, factor := range factors {
		from, to := s.Makespan, time.Duration(0)
		for i := range s.Spans {
			if x := &s.Spans[i]; int(x.Step) == k {
				from, to = min(from, x.Start), max(to, x.End)
			}
		}
		for i := range s.Spans {
			if x := &s.Spans[i]; int(x.Step) == k {
				x.Start, x.End = at+factor*(x.Start-from), at+factor*(x.End-from)
			}
		}
		at += factor * (to - from)
	}
	s.Makespan, s.Memory = at, nil
	return r
}

// Of steps of 9, 7, 2, 1, 6, 3 and 9 times a length the pairs without the first and the last are 9, 3,
// 7 and 9 long; the lower median is 7, steps 4 and 5. A run of up to two steps is shown whole, and of
// three the last two.
func TestTwoSteadySteps(t *testing.T) {
	for _, c := range []struct {
		factors []time.Duration
		want    StepRange
	}{
		{[]time.Duration{9}, StepRange{1, 1}},
		{[]time.Duration{9, 1}, StepRange{1, 2}},
		{[]time.Duration{9, 1, 1}, StepRange{2, 3}},
		{[]time.Duration{9, 1, 2, 1}, StepRange{2, 3}},
		{[]time.Duration{9, 1, 2, 4, 1}, StepRange{2, 3}}, // 3 and 6
		{[]time.Duration{9, 7, 2, 1, 6, 3, 9}, StepRange{4, 5}},
	} {
		if got := lengthenedRun(t, c.factors...).shown(); got != c.want {
			t.Errorf("steps of lengths %v: shown are %v, want %v", c.factors, got, c.want)
		}
	}
}

// A chart of steps 2 and 3 of four has what ran between the ends of steps 1 and 3, from 0 on, and says so.
func TestCrop(t *testing.T) {
	r := lengthenedRun(t, 3, 1, 2, 1)
	r.Show, r.FirstStep = StepRange{8, 9}, 7
	c := newColouring(r)
	ch := newChart(r, c)
	ends := ch.stepEnds
	ch.crop()
	if ch.shown.from != ends[0] || ch.shown.to != ends[2] || ch.end != ends[2]-ends[0] || ch.shown.length != ch.end {
		t.Fatalf("shown is %+v up to %v of steps that end at %v", ch.shown, ch.end, ends)
	}
	var want, got time.Duration
	for i := range r.Schedule.Spans {
		if x := &r.Schedule.Spans[i]; x.Step == 1 || x.Step == 2 {
			want += x.End - x.Start
		}
	}
	for _, row := range ch.rows {
		for _, p := range slices.Concat(row.lanes...) {
			if p.from < 0 || p.to > ch.end || p.to < p.from {
				t.Errorf("a piece from %v to %v of %v", p.from, p.to, ch.end)
			}
			if p.category < len(c.names) {
				got += p.to - p.from
			}
		}
	}
	if got != want {
		t.Errorf("tasks take %v in the chart, want %v", got, want)
	}
	svg := string(drawn(t, Figures()[0], "svg", Input{Run: r}))
	must.Contain(t, svg, "steps 8 and 9 of 4", ">step 8<", ">step 9<", "time after ")
	if strings.Contains(svg, ">step 10<") {
		t.Error("the picture has a step that it does not show")
	}
}

// Steps that the schedule does not have are refused.
func TestStepsOutside(t *testing.T) {
	r := tinyRun(t, schedule.Measured, 1) // steps 5 and 6
	for _, s := range []StepRange{{4, 5}, {6, 7}, {6, 5}} {
		r.Show = s
		if err := Gantt(nil, paper.Page{Format: "svg"}, r); err == nil || !strings.HasSuffix(err.Error(), "the schedule has 5:6") {
			t.Errorf("steps %v: %v", s, err)
		}
	}
}

// A prediction of the same steps shows the steps that the measurement does, whichever are its own
// steady ones; one of another number of steps chooses by itself.
func TestPredictionShowsTheSameSteps(t *testing.T) {
	measured := lengthenedRun(t, 9, 7, 2, 1, 6, 3, 9) // steps 4 and 5
	if got := lengthenedRun(t, 1, 1, 2, 9, 9, 9, 9).showing(measured).shown(); got != (StepRange{4, 5}) {
		t.Errorf("shown are %v, want 4 and 5", got)
	}
	measured.Show = StepRange{6, 7}
	if got := lengthenedRun(t, 9, 1, 2, 1).showing(measured).shown(); got != (StepRange{2, 3}) {
		t.Errorf("shown are %v, want 2 and 3", got)
	}
}
