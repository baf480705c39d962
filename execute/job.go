package execute

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"dahl/schedule"
)

// job is one run of one graph: the state that the workers share while it lasts.
type job struct {
	graph   *compiledGraph
	replay  *replay // the graph's replay, or the one that runs ahead; nil means that a policy decides
	team    *team
	steps   int // asked for; once the workers rest, those that ran
	gate    gate
	record  bool
	mine    []bool       // by lane: this process does its tasks
	probe   *finiteProbe // nil in other runs than FindNotFinite's
	base    time.Time
	ended   time.Duration       // when the last task had ended
	middle  int32               // the period counts from the end of this round, as in schedule.Schedule
	entered []schedule.Interval // by move: when it ran before the first step

	ranked   *rankedRun // nil means that this process does all
	sequence int32      // of the runs of all ranks
	grants   int        // the lane of granted steps; 0 means that this process grants them itself

	dynamic *dispatcher // nil means that a plan is replayed
	starter int         // the worker that starts it

	failure atomic.Pointer[error]
	done    sync.WaitGroup
}

// progress is when a lane's last tasks ended: of the first round with all tasks, of those up to the middle one,
// and of all. A run without a record finds its period from these.
type progress struct{ first, middle, last time.Duration }

// note notes the end of a task. A round is a step, or a period of lists with lags.
func (p *progress) note(j *job, round int32, end time.Duration) {
	if int(round) >= j.steps {
		return // some tasks of the last steps
	}
	p.last = end
	if round <= j.middle {
		p.middle = end
	}
	if round <= j.lag() {
		p.first = end
	}
}

// lag is the greatest one of a task: the first round with all tasks.
func (j *job) lag() int32 {
	if j.replay == nil {
		return 0
	}
	return j.replay.maxLag
}

// period is the mean distance of the ends of rounds over the last half of those with all tasks, as
// schedule.Schedule has it; 0 with a single step. If a run ended before the middle one, all rounds
// after the first count.
func (r *Runner) period(j *job, others []outcome) time.Duration {
	all := r.progress()
	for _, o := range others {
		all.first, all.middle, all.last = max(all.first, o.First), max(all.middle, o.Middle), max(all.last, o.Last)
	}
	if j.steps == 1 || j.failure.Load() != nil || j.cut() {
		return 0
	}
	last, lag := j.steps-1, int(j.lag())
	if last <= lag {
		return j.ended / time.Duration(j.steps)
	}
	if last > int(j.middle) {
		return (all.last - all.middle) / time.Duration(last-int(j.middle))
	}
	return (all.last - all.first) / time.Duration(last-lag)
}

// progress puts the progress of all lanes together.
func (r *Runner) progress() (all progress) {
	include := func(p progress) {
		all.first, all.middle, all.last = max(all.first, p.first), max(all.middle, p.middle), max(all.last, p.last)
	}
	for _, w := range r.workers {
		include(w.progress)
	}
	for d := range r.eachDevice {
		for _, l := range d.lanes {
			if l.Worker >= 0 { // a schedule's steps end with their tasks, not with copies
				include(l.progress)
			}
		}
	}
	return all
}

// now is the time since the run began.
func (j *job) now() time.Duration { return time.Since(j.base) }

// granted reports whether rank 0 lets a step begin.
func (j *job) granted(step int64) bool {
	return j.grants == 0 || j.team.members[j.grants].count.Load() > step
}

// runs reports whether a step of a period that has begun is one of the run.
func (j *job) runs(step int32) bool { return step >= 0 && int(step) < j.steps && !j.gate.over(step) }

// endAtStep makes the furthest step that any lane has begun the last one.
func (j *job) endAtStep() {
	if j.dynamic != nil {
		j.gate.begin(j.dynamic.endAtStep(j))
	}
	j.gate.close()
}

// fail ends the run; the first failure is kept.
func (j *job) fail(err error) {
	j.failure.CompareAndSwap(nil, &err)
	j.team.stop()
}

// fault ends the run with a failure at a task.
func (j *job) fault(t int32, step int32, cause error) {
	j.fail(j.taskError(t, step, cause))
}

// recovered turns the value of a panic into a cause.
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
		if !j.mine[w] {
			continue
		}
		if j.team.members[w].count.Load() < int64(len(list)*(j.steps+int(j.replay.maxLag))) {
			return true
		}
	}
	return false
}
