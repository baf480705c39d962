package plan

import (
	"cmp"
	"slices"
	"time"

	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/explain"
)

// Waits says why a step takes as long as it does: the causes of waits of workers, and the parts of the critical path. Times are
// in seconds.
type Waits struct {
	PerStepS  map[string]float64 `json:"per_step_s"`          // by cause, of all workers together
	Transfers []TransferTime     `json:"transfers,omitempty"` // that workers waited for, the longest first
	Path      PathParts          `json:"critical_path"`
	AsleepS   float64            `json:"asleep_s,omitempty"` // of the time of all causes per step
}

// PathParts is the parts of the critical path per step, which add up to the makespan per
// step: tasks, copies and changes of state on the path, and time between them.
type PathParts struct {
	TasksS  float64        `json:"tasks_s"`
	CopiesS float64        `json:"copies_s"`
	ChangeS float64        `json:"changes_s,omitempty"` // of clocks and of sleep
	WaitS   float64        `json:"wait_s"`
	Copies  []TransferTime `json:"copies,omitempty"` // the longest first
}

// TransferTime is time per step that is due to copies of a buffer on a way.
type TransferTime struct {
	Buffer string  `json:"buffer"` // where it comes, "w@gpu"; in the host's memory "w"
	From   string  `json:"from"`
	StepS  float64 `json:"per_step_s"`
}

// WaitsOf finds the waits of a schedule.
func WaitsOf(p *schedule.Problem, s *schedule.Schedule) *Waits {
	w := &Waits{PerStepS: map[string]float64{}}
	perStep := func(d time.Duration) float64 { return d.Seconds() / float64(s.Steps) }
	waited, onPath := map[TransferTime]time.Duration{}, map[TransferTime]time.Duration{}
	for _, idle := range explain.Idles(p, s) {
		w.PerStepS[idle.Cause.String()] += perStep(idle.End - idle.Start)
		if idle.Transfer >= 0 {
			waited[transferOf(p, &s.Transfers[idle.Transfer])] += idle.End - idle.Start
		}
	}
	units, _ := explain.Stretches(p, s)
	for _, stretches := range units {
		for _, x := range stretches {
			if x.Asleep {
				w.AsleepS += perStep(x.End - x.Start)
			}
		}
	}
	for _, step := range explain.CriticalPath(p, s) {
		start, end := step.Times(s)
		w.Path.WaitS += perStep(step.Wait)
		switch {
		case step.Span >= 0:
			w.Path.TasksS += perStep(end - start)
		case step.Transfer >= 0:
			w.Path.CopiesS += perStep(end - start)
			onPath[transferOf(p, &s.Transfers[step.Transfer])] += end - start
		default:
			w.Path.ChangeS += perStep(end - start)
		}
	}
	w.Transfers, w.Path.Copies = longest(waited, s.Steps), longest(onPath, s.Steps)
	return w
}

// transferOf names what a transfer brings.
func transferOf(p *schedule.Problem, t *schedule.Transfer) TransferTime {
	memory := func(m platform.MemoryID) string { return p.Platform.Memories[m].Name }
	name := p.Graph.Buffers[t.Buffer].Name
	if !p.Platform.IsHost(t.To) {
		name += "@" + memory(t.To)
	}
	return TransferTime{Buffer: name, From: memory(t.From)}
}

// longest lists times per step, the longest first.
func longest(sums map[TransferTime]time.Duration, steps int) []TransferTime {
	var all []TransferTime
	for t, sum := range sums {
		t.StepS = sum.Seconds() / float64(steps)
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b TransferTime) int {
		return cmp.Or(cmp.Compare(b.StepS, a.StepS), cmp.Compare(a.Buffer, b.Buffer), cmp.Compare(a.From, b.From))
	})
	return all
}
