package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/explain"
)

// waitSummary says why a step takes as long as it does: what the workers waited for, and
// what the critical path of the schedule consists of.
type waitSummary struct {
	PerStepS  map[string]float64 `json:"per_step_s"`          // by cause, of all workers together
	Transfers []transferTime     `json:"transfers,omitempty"` // that workers waited for, the longest first
	Path      pathSummary        `json:"critical_path"`
}

// pathSummary is the parts of the critical path per step, which add up to the makespan per
// step: tasks, copies that bound what came after them, and time between the two.
type pathSummary struct {
	TasksS  float64        `json:"tasks_s"`
	CopiesS float64        `json:"copies_s"`
	WaitS   float64        `json:"wait_s"`
	Copies  []transferTime `json:"copies,omitempty"` // the longest first
}

// transferTime is time per step that is due to copies of a buffer on a way.
type transferTime struct {
	Buffer string  `json:"buffer"` // where it comes, "w@gpu"; in the host's memory "w"
	From   string  `json:"from"`
	StepS  float64 `json:"per_step_s"`
}

func newWaitSummary(p *schedule.Problem, s *schedule.Schedule) *waitSummary {
	w := &waitSummary{PerStepS: map[string]float64{}}
	perStep := func(d time.Duration) float64 { return d.Seconds() / float64(s.Steps) }
	waited, onPath := map[transferTime]time.Duration{}, map[transferTime]time.Duration{}
	for _, idle := range explain.Idles(p, s) {
		w.PerStepS[idle.Cause.String()] += perStep(idle.End - idle.Start)
		if idle.Transfer >= 0 {
			waited[instanceOf(p, &s.Transfers[idle.Transfer])] += idle.End - idle.Start
		}
	}
	for _, step := range explain.CriticalPath(p, s) {
		w.Path.WaitS += perStep(step.Wait)
		if step.Span >= 0 {
			w.Path.TasksS += perStep(s.Spans[step.Span].End - s.Spans[step.Span].Start)
			continue
		}
		t := &s.Transfers[step.Transfer]
		w.Path.CopiesS += perStep(t.End - t.Start)
		onPath[instanceOf(p, t)] += t.End - t.Start
	}
	w.Transfers, w.Path.Copies = longest(waited, s.Steps), longest(onPath, s.Steps)
	return w
}

// instanceOf names what a transfer brings.
func instanceOf(p *schedule.Problem, t *schedule.Transfer) transferTime {
	name := p.Graph.Buffers[t.Buffer].Name
	if t.To != p.Platform.HostMemory() {
		name += "@" + memoryName(p, t.To)
	}
	return transferTime{Buffer: name, From: memoryName(p, t.From)}
}

func memoryName(p *schedule.Problem, m platform.MemoryID) string { return p.Platform.Memories[m].Name }

// longest lists times per step, the longest first.
func longest(sums map[transferTime]time.Duration, steps int) []transferTime {
	var all []transferTime
	for t, sum := range sums {
		t.StepS = sum.Seconds() / float64(steps)
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b transferTime) int {
		return cmp.Or(cmp.Compare(b.StepS, a.StepS), cmp.Compare(a.Buffer, b.Buffer), cmp.Compare(a.From, b.From))
	})
	return all
}

// maxNamedCopies bounds the copies that are named in one line; --json has all.
const maxNamedCopies = 3

// print writes two lines. Where nothing moves there is little to say.
func (w *waitSummary) print(out io.Writer) {
	of := func(cause explain.IdleCause) string { return shortTime(seconds(w.PerStepS[cause.String()])) }
	fmt.Fprintf(out, "waits     per step of all workers: %s for a predecessor, %s for a transfer, %s for dispatch, %s without work%s\n",
		of(explain.WaitPredecessor), of(explain.WaitTransfer), of(explain.WaitDispatch), of(explain.NoWork), namedCopies("; ", "for", w.Transfers))
	fmt.Fprintf(out, "path      per step %s in tasks, %s in copies, %s between them%s\n",
		shortTime(seconds(w.Path.TasksS)), shortTime(seconds(w.Path.CopiesS)), shortTime(seconds(w.Path.WaitS)), namedCopies("; ", "in", w.Path.Copies))
}

// namedCopies writes the longest: "; 0.4 ms for w@gpu from ram".
func namedCopies(before, what string, all []transferTime) string {
	var parts []string
	for i, t := range all {
		if i == maxNamedCopies {
			parts = append(parts, "…")
			break
		}
		parts = append(parts, fmt.Sprintf("%s %s %s from %s", shortTime(seconds(t.StepS)), what, t.Buffer, t.From))
	}
	if parts == nil {
		return ""
	}
	return before + strings.Join(parts, ", ")
}
