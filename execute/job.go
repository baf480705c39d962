package execute

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"dahl/dag"
	"dahl/schedule"
)

// job is one run of one graph: what the workers share while it lasts.
type job struct {
	graph   *compiledGraph
	replay  *replay // the graph's, or the one that runs ahead; nil: dynamic
	team    *team
	steps   int
	record  bool
	verify  *verifier // nil: do not check
	base    time.Time
	ended   time.Duration       // when the last task had ended
	entered []schedule.Interval // when what moves before the first step did, by move

	dynamic *dispatcher // nil: a replay
	starter int         // the worker that starts it

	failure atomic.Pointer[error]
	done    sync.WaitGroup
}

// now is the time since the run began.
func (j *job) now() time.Duration { return time.Since(j.base) }

// fail ends the run; the first failure is kept.
func (j *job) fail(err error) {
	j.failure.CompareAndSwap(nil, &err)
	j.team.stop()
}

// fault is a failure at a task.
func (j *job) fault(t int32, step int32, cause error) {
	j.fail(j.taskError(t, step, cause))
}

// taskError names a task of the graph that runs.
func (j *job) taskError(t, step int32, cause error) *TaskError {
	return taskError(j.graph.graph, dag.TaskID(t), int(step), cause)
}

// recovered turns what a panic carried into a cause.
func recovered(v any) error {
	switch v := v.(type) {
	case nil:
		return errGoexit
	case error:
		return fmt.Errorf("panic: %w", v)
	default:
		return fmt.Errorf("panic: %v", v)
	}
}

// cut reports whether the run was stopped before its last task had ended.
func (j *job) cut() bool {
	if !j.team.stopped.Load() {
		return false
	}
	if j.dynamic != nil {
		return !j.dynamic.engine.Finished()
	}
	for w, list := range j.replay.lists {
		if j.team.members[w].count.Load() < int64(len(list)*j.steps) {
			return true
		}
	}
	return false
}
