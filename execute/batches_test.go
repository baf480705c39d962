package execute

import (
	"context"
	"reflect"
	"slices"
	"testing"

	"dahl/dag"
	"dahl/execute/driver"
	"dahl/must"
)

// TestCut: lane 0 has seven tasks. Tasks 2 and 5 wait for lane 1; lane 1 waits for task 3
// (the fourth) of the same step and for the last but one of the step before, need -1 of
// 7: task 5. So batches begin at 0, 2, 4 (after 3), 5 and 6 (after 5).
func TestCut(t *testing.T) {
	r := &replay{
		lists: [][]item{{{task: 0}, {task: 1}, {task: 2, endWait: 1}, {task: 3, firstWait: 1, endWait: 1}, {task: 4, firstWait: 1, endWait: 1},
			{task: 5, firstWait: 1, endWait: 2}, {task: 6, firstWait: 2, endWait: 2}},
			{{task: 7, firstWait: 2, endWait: 4}, {task: 8, firstWait: 4, endWait: 4}}},
		waits: []wait{{1, 1, 2}, {1, 2, 2}, {0, 4, 7}, {0, -1, 7}},
	}
	s := r.cut(0, false)
	want := []batch{{first: 0, end: 2}, {first: 2, end: 4}, {first: 4, end: 5}, {first: 5, end: 6}, {first: 6, end: 7}}
	if !reflect.DeepEqual(s.list, want) {
		t.Errorf("batches %v, want %v", s.list, want)
	}
	// By number of tasks over two steps: 4 tasks are the first two batches, 7 all five, and
	// so on with five more.
	for _, c := range [][2]int64{{-3, 0}, {0, 0}, {1, 1}, {2, 1}, {3, 2}, {4, 2}, {5, 3}, {6, 4}, {7, 5}, {8, 6}, {13, 9}, {14, 10}} {
		if n := s.needed(c[0]); n != c[1] {
			t.Errorf("%d tasks need %d batches, want %d", c[0], n, c[1])
		}
	}
	for n, tasks := range []int64{0, 2, 4, 5, 6, 7, 9, 11, 12, 13, 14} {
		if got := s.ended(int64(n)); got != tasks {
			t.Errorf("%d batches are %d tasks, want %d", n, got, tasks)
		}
	}
}

// unrecorded runs steps of training without a record, in two runs with an evaluation
// between them, and returns a digest of the weights.
func unrecorded(t *testing.T, r *Runner, steps int) string {
	t.Helper()
	for _, run := range [][2]int{{0, steps}, {1, 2}, {0, 2}} {
		must.Get(r.Run(context.Background(), run[0], run[1], false))(t)
	}
	return weights(r)
}

// countedDriver counts what is asked of a device.
type countedDriver struct {
	capturing
	launches, records, replays int
}

func (d *countedDriver) Launch(s driver.StreamID, l driver.LaunchID) error {
	d.launches++
	return d.capturing.Launch(s, l)
}

func (d *countedDriver) Record(s driver.StreamID, e driver.EventID) error {
	d.records++
	return d.capturing.Record(s, e)
}

func (d *countedDriver) Replay(s driver.StreamID, c driver.CaptureID) error {
	d.replays++
	return d.capturing.Replay(s, c)
}

// TestCallsOfAStep counts the calls of steps that run on the device as far as they can:
// in a run that is not recorded, one event for every batch, one replay for every captured
// one, and launches for the rest; in one that is, a launch and two events for every task,
// and those that read the clock.
func TestCallsOfAStep(t *testing.T) {
	const steps = 5
	prog := testProgram(t)
	r := newRunner(t, prog, how{Platform: node(t, 1, 1), Plans: spreadPlans(prog, 2, func(*dag.Task) int { return 1 }), Options: Options{Hooks: testHooks(nil)}})
	d := r.devices[1]
	counted := &countedDriver{capturing: d.Driver.(capturing)}
	d.Driver = counted
	run := func(record bool) countedDriver {
		if _, err := r.Run(context.Background(), 0, 1, false); err != nil { // what moves before the first step
			t.Fatal(err)
		}
		*counted = countedDriver{capturing: counted.capturing}
		must.Get(r.Run(context.Background(), 0, steps, record))(t)
		return *counted
	}
	n, moves := r.Issue(0), len(r.graphs[0].enter)+len(r.graphs[0].leave)
	launches, alone := 0, 0
	for i, it := range r.graphs[0].ahead.lists[1] {
		if r.graphs[0].issues[it.task].launch < 0 {
			continue
		}
		launches++
		if s := r.graphs[0].batches[1]; s.list[s.batchOf[i]].captured == nil {
			alone++
		}
	}
	got := run(false)
	if got.records > n.Segments*steps+moves || got.records < n.Segments*steps || got.replays != n.Graphs*steps || got.launches != alone*steps {
		t.Errorf("not recorded: %d events, %d replays, %d launches; %+v, %d launches alone", got.records, got.replays, got.launches, n, alone)
	}
	if n.Graphs == 0 || n.Graphs+alone >= launches/2 {
		t.Errorf("%d launches of a step are %d graphs and %d launches", launches, n.Graphs, alone)
	}
	if got := run(true); got.replays != 0 || got.launches != launches*steps || got.records < 2*n.Tasks*steps {
		t.Errorf("recorded: %d events, %d replays, %d launches; %+v", got.records, got.replays, got.launches, n)
	}
}

// TestFeedRunsAhead: with all layers on a device, the batch of the next step is fed while the
// device is still at work on this one. Where tasks are timed it is not: the schedule is to be
// one of the origin, where what a step is fed exists once.
func TestFeedRunsAhead(t *testing.T) {
	prog := testProgram(t)
	r := newRunner(t, prog, how{Platform: node(t, 1, 1), Plans: spreadPlans(prog, 2, func(*dag.Task) int { return 1 }), Options: Options{Hooks: testHooks(nil)}})
	c := r.graphs[0]
	waitsForDevice := func(rep *replay) bool {
		for _, it := range rep.lists[0] {
			if c.graph.Tasks[it.task].Op == "feed" {
				return slices.ContainsFunc(rep.waits[it.firstWait:it.endWait], func(w wait) bool { return w.worker == 1 })
			}
		}
		t.Fatal("the core feeds nothing")
		return false
	}
	if !waitsForDevice(c.replay) || waitsForDevice(c.ahead) {
		t.Errorf("feeding waits for the device: %v where tasks are timed, %v else", waitsForDevice(c.replay), waitsForDevice(c.ahead))
	}
}
