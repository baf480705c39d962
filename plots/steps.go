package plots

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"time"

	"dahl/plots/paper"
	"dahl/schedule"
)

// StepRange is the range of steps in a Gantt chart, by their numbers in the run, both inclusive.
// The zero value stands for two steady ones.
type StepRange struct{ First, Last int }

// firstStep is the number of the first step of the schedule in its run.
func (r *Run) firstStep() int { return max(1, r.FirstStep) }

// AllSteps are the steps of the schedule.
func (r *Run) AllSteps() StepRange {
	return StepRange{r.firstStep(), r.firstStep() + max(1, r.Schedule.Steps) - 1}
}

// checkSteps refuses steps to show that the schedule does not have.
func (r *Run) checkSteps() error {
	all := r.AllSteps()
	if s := r.Show; s != (StepRange{}) && (s.First < all.First || s.Last > all.Last || s.First > s.Last) {
		return fmt.Errorf("steps %d:%d: the schedule has %d:%d", s.First, s.Last, all.First, all.Last)
	}
	return nil
}

// text is the range in words.
func (s StepRange) text() string {
	switch s.Last - s.First {
	case 0:
		return fmt.Sprintf("step %d", s.First)
	case 1:
		return fmt.Sprintf("steps %d and %d", s.First, s.Last)
	}
	return fmt.Sprintf("steps %d to %d", s.First, s.Last)
}

// window is the part of a schedule that a chart shows.
type window struct {
	steps    StepRange
	whole    bool // it is the schedule
	from, to time.Duration
	length   time.Duration // without the copies of a whole schedule that go on after its last task
}

// stepEnds are the ends of the last task of each step.
func (r *Run) stepEnds() (ends []time.Duration) {
	for i := range r.Schedule.Spans {
		s := &r.Schedule.Spans[i]
		for int(s.Step) >= len(ends) {
			ends = append(ends, 0)
		}
		ends[s.Step] = max(ends[s.Step], s.End)
	}
	return ends
}

// shown is the steps to show: those asked for, or two steady ones.
func (r *Run) shown() StepRange {
	if r.Show != (StepRange{}) {
		return r.Show
	}
	return r.steady()
}

// steady chooses two neighbouring steps: the pair of median length, without the first step and the
// last: the former warms up, and no step follows the latter. A schedule of three steps has only one
// pair without the first, and a shorter one is shown whole.
func (r *Run) steady() StepRange {
	ends := r.stepEnds()
	n := len(ends)
	if n < 3 {
		return r.AllSteps()
	}
	var pairs []int // the first step of each, from 0
	for k := 1; k == 1 || k+2 < n; k++ {
		pairs = append(pairs, k)
	}
	length := func(k int) time.Duration { return ends[k+1] - ends[k-1] }
	slices.SortStableFunc(pairs, func(a, b int) int { return cmp.Compare(length(a), length(b)) })
	k := r.firstStep() + pairs[(len(pairs)-1)/2]
	return StepRange{k, k + 1}
}

// showing is the run with the steps that another shows, where it has the same, else with two steady
// ones of its own.
func (r *Run) showing(other *Run) *Run {
	if r == nil || r.Schedule == nil {
		return r
	}
	own := *r
	if own.Show = (StepRange{}); r.AllSteps() == other.AllSteps() {
		own.Show = other.shown()
	}
	return &own
}

// window returns the window of the steps to show: from the end of the step before the first of them, so
// that it is as long as they take, up to the end of the last. What the first of them did before lies
// outside.
func (c *chart) window() window {
	all, w := c.run.AllSteps(), window{steps: c.run.shown()}
	if w.whole = w.steps == all; w.whole {
		w.to, w.length = c.end, c.run.Schedule.Makespan
		return w
	}
	last := len(c.stepEnds) - 1
	if before := w.steps.First - all.First - 1; before >= 0 {
		w.from = c.stepEnds[min(before, last)]
	}
	w.to = max(w.from, c.stepEnds[min(w.steps.Last-all.First, last)])
	w.length = w.to - w.from
	return w
}

// crop removes everything outside the chart's window, where the axis then begins.
func (c *chart) crop() {
	if c.shown = c.window(); c.shown.whole {
		return
	}
	for i := range c.rows {
		r := &c.rows[i]
		r.path = c.shown.cut(r.path)
		for _, lanes := range [][][]piece{r.lanes, r.clocks} {
			for l := range lanes {
				lanes[l] = c.shown.cut(lanes[l])
			}
		}
	}
	c.hops = slices.DeleteFunc(c.hops, func(h hop) bool { return min(h.from, h.to) < c.shown.from || max(h.from, h.to) > c.shown.to })
	for i := range c.hops {
		c.hops[i].from -= c.shown.from
		c.hops[i].to -= c.shown.from
	}
	c.end = c.shown.to - c.shown.from
}

// cut clips pieces to the window and counts their times from its beginning.
func (w *window) cut(pieces []piece) (inside []piece) {
	for _, p := range pieces {
		if p.from < w.to && p.to > w.from || p.from == p.to && p.from >= w.from && p.to <= w.to {
			p.from, p.to = max(p.from, w.from)-w.from, min(p.to, w.to)-w.from
			inside = append(inside, p)
		}
	}
	return inside
}

// within is the run in the steps to show, where some were asked for: its power, its memory and its time. It is for
// figures without tasks.
func (r *Run) within() *Run {
	if r.Show == (StepRange{}) || r.Show == r.AllSteps() {
		return r
	}
	c := &chart{run: r, stepEnds: r.stepEnds()}
	w := c.window()
	own, s := *r, *r.Schedule
	own.Title, own.Part, own.Schedule = w.title(r), cmp.Or(r.Part, w.steps.text()), &s
	own.Power = nil
	for _, t := range r.Power {
		from := sort.Search(len(t.Samples), func(k int) bool { return t.Samples[k].At > w.from })
		t.Samples = slices.Clone(t.Samples[max(0, from-1):])
		for k := range t.Samples {
			t.Samples[k].At = max(0, t.Samples[k].At-w.from)
		}
		own.Power = append(own.Power, t)
	}
	s.Memory, s.Makespan = slices.Clone(s.Memory), w.length
	for k := range s.Memory {
		s.Memory[k].At = max(0, s.Memory[k].At-w.from)
	}
	s.Memory = slices.DeleteFunc(s.Memory, func(o schedule.Occupancy) bool { return o.At > w.length })
	return &own
}

// title is the title of a chart, with its steps where it does not show them all.
func (c *chart) title() string { return c.shown.title(c.run) }

func (w *window) title(r *Run) string {
	switch {
	case w.whole:
		return r.title()
	case r.Part != "": // which the summary says
		return r.title() + ": " + w.steps.text()
	default:
		return fmt.Sprintf("%s: %s of %d", r.title(), w.steps.text(), r.Schedule.Steps)
	}
}

// caption names the length of the shown time, and the steps.
func (w *window) caption() string {
	if w.whole {
		return paper.FormatDuration(w.length)
	}
	return fmt.Sprintf("%s, %s", w.steps.text(), paper.FormatDuration(w.length))
}

// axis names the time axis.
func (w *window) axis() string {
	if w.from == 0 {
		return "time"
	}
	return "time after " + paper.FormatDuration(w.from)
}
