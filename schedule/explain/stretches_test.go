package explain

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"dahl/platform"
	"dahl/schedule"
)

func change(kind schedule.ChangeKind, d platform.DeviceID, unit int32, start, end int64) schedule.Change {
	return schedule.Change{Kind: kind, Device: d, Unit: unit, Link: -1, Start: time.Duration(start), End: time.Duration(end)}
}

// d0 is the step of d before d1. The gap is that of the unit on which the last span runs, up to it.
var changeCases = []struct {
	words     string
	spans     []schedule.Span
	changes   []schedule.Change
	unit      platform.WorkerID
	gap       string // causes of the unit's idle time up to its first task
	stretches string
	path      []PathStep
}{
	{
		words:   "b asks at 0 for another clock, its domain is busy until 10, and the change takes 2",
		spans:   []schedule.Span{span(taskA, 0, cpu0, 0, 10), span(taskB, 0, cpu1, 12, 32)},
		changes: []schedule.Change{change(schedule.SwitchClock, 0, -1, 10, 12)}, unit: cpu1,
		gap: "change of state 0-12;", stretches: "clock 10-12;",
		path: []PathStep{{Span: 0, Transfer: -1, Change: -1}, {Span: -1, Transfer: -1, Change: 0, Bound: BoundBusy}, {Span: 1, Transfer: -1, Change: -1, Bound: BoundChange}},
	},
	{
		words:   "asleep from 5 on, d1 is ready at 50, waking takes 2, dispatch 1",
		spans:   []schedule.Span{span(taskD, 0, cpu1, 0, 50), span(taskD, 1, gpu, 53, 60)},
		changes: []schedule.Change{change(schedule.FallAsleep, 1, -1, 4, 5), change(schedule.WakeUp, 1, -1, 50, 52)}, unit: gpu,
		gap: "dependence 0-50; change of state 50-52; dispatch 52-53;", stretches: "sleep 4-5; asleep 5-50; wake 50-52;",
		path: []PathStep{{Span: 0, Transfer: -1, Change: -1}, {Span: -1, Transfer: -1, Change: 1, Bound: BoundPredecessor}, {Span: 1, Transfer: -1, Change: -1, Bound: BoundChange, Wait: 1}},
	},
	{
		words:   "d1 is ready at 50, while the unit falls asleep from 49 to 51; that began by itself",
		spans:   []schedule.Span{span(taskD, 0, cpu1, 0, 50), span(taskD, 1, gpu, 53, 60)},
		changes: []schedule.Change{change(schedule.FallAsleep, 1, -1, 49, 51), change(schedule.WakeUp, 1, -1, 51, 53)}, unit: gpu,
		gap: "dependence 0-50; change of state 50-51; change of state 51-53;", stretches: "sleep 49-51; wake 51-53;",
		path: []PathStep{{Span: -1, Transfer: -1, Change: 0, Wait: 49}, {Span: -1, Transfer: -1, Change: 1, Bound: BoundChange}, {Span: 1, Transfer: -1, Change: -1, Bound: BoundChange}},
	},
	{
		words: "the clock of both cores changes while cpu.1 falls asleep from 1 to 4: what it shows is the sleep",
		spans: []schedule.Span{span(taskA, 0, cpu0, 5, 10), span(taskB, 0, cpu1, 12, 32)},
		changes: []schedule.Change{change(schedule.SwitchClock, 0, -1, 0, 5), change(schedule.FallAsleep, 0, 1, 1, 4),
			change(schedule.WakeUp, 0, 1, 10, 12)}, unit: cpu1,
		gap: "change of state 0-5; dispatch 5-10; change of state 10-12;", stretches: "clock 0-1; sleep 1-4; asleep 4-10; wake 10-12;",
		path: []PathStep{{Span: -1, Transfer: -1, Change: 0}, {Span: -1, Transfer: -1, Change: 2, Bound: BoundChange, Wait: 5}, {Span: 1, Transfer: -1, Change: -1, Bound: BoundChange}},
	},
}

func TestChangesAreExplained(t *testing.T) {
	for _, c := range changeCases {
		p := gapProblem(t)
		s := &schedule.Schedule{Steps: 2, Spans: c.spans, Changes: c.changes, Makespan: c.spans[1].End}
		gap, stretches := "", ""
		for _, idle := range Idles(p, s) {
			if idle.Worker == c.unit && idle.Cause != NoWork {
				gap += fmt.Sprintf(" %v %d-%d;", idle.Cause, idle.Start, idle.End)
			}
		}
		units, links := Stretches(p, s)
		for _, x := range units[c.unit] {
			what := x.Change.Kind.String()
			if x.Asleep {
				what = "asleep"
			}
			stretches += fmt.Sprintf(" %s %d-%d;", what, x.Start, x.End)
		}
		if gap != " "+c.gap || stretches != " "+c.stretches || len(links) != 0 {
			t.Errorf("%s: gap%s and stretches%s, want %s and %s", c.words, gap, stretches, c.gap, c.stretches)
		}
		if path := CriticalPath(p, s); !slices.Equal(path, c.path) {
			t.Errorf("%s: path %+v, want %+v", c.words, path, c.path)
		}
	}
}

// A unit falls asleep from 58 to 62 in a run of 60, and wakes after it.
func TestStretchesEndWithTheRun(t *testing.T) {
	s := &schedule.Schedule{Makespan: 60, Changes: []schedule.Change{change(schedule.FallAsleep, 1, -1, 58, 62), change(schedule.WakeUp, 1, -1, 70, 71)}}
	units, _ := Stretches(gapProblem(t), s)
	if list := units[gpu]; len(list) != 1 || list[0].Start != 58 || list[0].End != 60 {
		t.Errorf("%+v, want one from 58 to 60", list)
	}
}

// In a measured run only an emulated device is seen to change: the same wait for waking is dispatch
// elsewhere, where the platform alone says that the unit slept.
func TestModelledChangesExplainNothing(t *testing.T) {
	c := changeCases[1]
	for kind, want := range map[string]IdleCause{platform.Emulated: WaitChange, platform.CUDA: WaitDispatch} {
		p := gapProblem(t)
		p.Platform.Devices[1].Kind = kind
		s := &schedule.Schedule{World: schedule.Measured, Steps: 2, Spans: c.spans, Changes: c.changes, Makespan: c.spans[1].End}
		idles := slices.DeleteFunc(Idles(p, s), func(i Idle) bool { return i.Worker != gpu })
		if idles[1].Start != 50 || idles[1].Cause != want {
			t.Errorf("%s: %+v from 50 on, want %v", kind, idles[1], want)
		}
		for _, step := range CriticalPath(p, s) {
			if (step.Change >= 0) && want != WaitChange {
				t.Errorf("%s: the critical path has %+v", kind, step)
			}
		}
	}
}

// Of 0 to 100 without 10-20, 20-20 and 50-110, 0-10 and 20-50 are left.
func TestWithout(t *testing.T) {
	var got [][2]int64
	for from, to := range Without(0, 100, []Stretch{{Start: 10, End: 20}, {Start: 20, End: 20}, {Start: 50, End: 110}}) {
		got = append(got, [2]int64{int64(from), int64(to)})
	}
	if want := [][2]int64{{0, 10}, {20, 50}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
