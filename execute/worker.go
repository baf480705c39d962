package execute

import (
	"fmt"
	"runtime"
	"time"

	"dahl/dag"
	"dahl/execute/host"
	"dahl/kernels/calls"
	"dahl/platform"
	"dahl/schedule"
)

// worker is one goroutine on its own thread. It lives from New to Close.
type worker struct {
	id     int
	device platform.DeviceID
	cpu    int
	jobs   chan *job

	call    calls.Call // the call in progress; kept here so that it needs no allocation
	scratch []byte

	task, step int32         // in progress; task is -1 if there is none
	ended      time.Duration // of the last task
	spans      []schedule.Span
	progress   progress
	busy       taskTime
}

// main calls first and then runs jobs until the channel is closed. It sends the result of pinning
// to pinned. The thread is never unlocked, so it ends with the goroutine, and no other goroutine
// inherits its CPU.
func (w *worker) main(first func(), pinned chan<- error) {
	runtime.LockOSThread()
	err := host.Pin(w.cpu)
	first()
	if err != nil {
		err = fmt.Errorf("worker %d is not pinned to cpu %d: %w", w.id, w.cpu, err)
	}
	pinned <- err
	for j := range w.jobs {
		w.do(j)
	}
}

// do works on a job until it ends or fails.
func (w *worker) do(j *job) {
	defer j.done.Done()
	w.task = -1
	returned := false
	defer w.busy.publish()
	defer func() {
		cause := recover()
		switch {
		case returned:
		case w.task >= 0:
			j.fault(w.task, w.step, recovered(cause))
		default:
			j.fail(fmt.Errorf("execute: graph %q: %w", j.graph.graph.Name, recovered(cause)))
		}
	}()
	if j.dynamic != nil {
		w.serve(j)
	} else {
		w.replay(j)
	}
	returned = true
}

// replay goes through the worker's list once per period. Tasks with a lag have no step in the first periods, and others have none in the last
// ones, which follow the last step. Their waits are kept, since later items rely on them.
func (w *worker) replay(j *job) {
	list, waits, maxLag := j.replay.lists[w.id], j.replay.waits, j.replay.maxLag
	ended := int64(0)
	for period := int32(0); len(list) > 0; period++ {
		last := int32(j.steps) - 1
		if j.grants > 0 && period <= last && !j.team.await(w.id, j.grants, int64(period)+1) {
			return
		}
		if period > last || !j.gate.begin(period) {
			if last = int32(j.gate.steps(j.steps)) - 1; period > last+maxLag {
				return
			}
		}
		for i := range list {
			it := &list[i]
			for k := it.firstWait; k < it.endWait; k++ {
				wt := &waits[k]
				if !j.team.await(w.id, int(wt.worker), wt.need+int64(period)*wt.length) {
					return
				}
			}
			step := period - it.lag
			if j.team.stopped.Load() || step >= 0 && step <= last && !w.run(j, it.task, step, period) {
				return
			}
			ended++
			j.team.publish(w.id, ended)
		}
	}
}

// run executes one task in a round; false means that the run has failed.
func (w *worker) run(j *job, task, step, round int32) bool {
	w.task, w.step = task, step
	t := &j.graph.tasks[task]
	call := inStep(&t.call, t.later, step)
	start := j.now()
	if t.hook != nil {
		if err := t.hook(int(step), call); err != nil {
			j.fault(task, step, err)
			return false
		}
	} else {
		w.call = *call
		w.call.Work = w.scratch
		t.run[w.device](&w.call)
	}
	end := j.now()
	if j.probe != nil {
		j.probe.check(j.graph.graph, task, call.Args)
	}
	if j.record {
		w.spans = append(w.spans, schedule.Span{Task: dag.TaskID(task), Step: step, Worker: platform.WorkerID(w.id), Start: start, End: end})
	}
	w.progress.note(j, round, end)
	w.busy.add(step, end-start)
	w.task, w.ended = -1, end
	return true
}
