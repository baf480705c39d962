package execute

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"dahl/execute/align"
	"dahl/execute/driver"
	"dahl/platform"
	"dahl/schedule/place"
)

const (
	// inFlight is how many batches of one lane are issued and not yet known to be done. It is
	// enough to hide the time from an end to the next issue.
	inFlight = 32
	// pollPeriod is how often an idle goroutine asks a device that does not report finished work.
	pollPeriod = 50 * time.Microsecond
)

// device is the goroutine that issues the work of one memory's lanes: its workers and its copy engines.
// It issues a task to the lane's stream when the predecessors elsewhere have ended and those on this
// device have been issued. The device itself waits for the latter, by an event. The goroutine never
// blocks one lane for another.
type device struct {
	*driver.Thread
	memory platform.MemoryID
	name   string
	poller poller

	arenas deviceArenas
	lanes  []*deviceLane
	local  []int32 // by lane of the team: its index in lanes, or -1 if it belongs to another device
	bases  [2]driver.EventID
	times  deviceTimes   // of the last recorded run
	rebase time.Duration // rebasePeriod
}

// deviceLane is a list of tasks on a stream.
type deviceLane struct {
	place.Lane
	id     int // in the team
	stream driver.StreamID

	// For the batch with the count n, of the last inFlight batches: its events, at n % inFlight,
	// and when it was issued.
	starts, ends [inFlight]driver.EventID
	issuedAt     [inFlight]time.Duration

	list          []item
	batches       *batches
	issued, ended int64 // number of batches
	total         int64 // number of batches in all periods
	within        int32 // position in the list of the task being issued; -1 means that all of the batch is issued
	begun         bool  // issuing of the next batch has begun
	spans         []deviceSpan
	progress      progress
	busy          taskTime // of recorded tasks
}

// addLane makes the stream and the events of a lane.
func (d *device) addLane(id int, lane place.Lane) error {
	l := &deviceLane{id: id, Lane: lane}
	var err error
	if l.stream, err = d.Driver.NewStream(lane.Worker < 0); err != nil {
		return err
	}
	d.local[id] = int32(len(d.lanes))
	d.lanes = append(d.lanes, l)
	return cmp.Or(d.NewEvents(l.starts[:]), d.NewEvents(l.ends[:]))
}

// copyStream is the stream of a copy engine in one direction.
func (d *device) copyStream(in bool) driver.StreamID {
	for _, l := range d.lanes {
		if l.Worker < 0 && l.In == in {
			return l.stream
		}
	}
	panic("execute: a device has no copy engine")
}

// run does the device's part of a job.
func (d *device) run(j *job) {
	defer j.done.Done()
	defer func() {
		if cause := recover(); cause != nil {
			j.fail(fmt.Errorf("execute: graph %q: %w", j.graph.graph.Name, &deviceError{d.name, driver.Recovered(cause)}))
		}
	}()
	issue := issueLoop{device: d, job: j, clock: &d.times}
	for _, l := range d.lanes {
		l.issued, l.ended = 0, 0
		l.list, l.batches = j.replay.lists[l.id], j.graph.batches[l.id]
		if j.record {
			l.batches = j.graph.singles[l.id]
		}
		l.total = l.batches.total(j.steps + int(j.replay.maxLag))
	}
	if err := issue.all(); err != nil {
		j.fail(issue.blame(err))
		issue.drain()
	}
	for _, l := range d.lanes {
		l.busy.publish()
	}
}

// issueLoop is a device at work on a job.
type issueLoop struct {
	*device
	job   *job
	clock *deviceTimes // of a recorded run

	lane *deviceLane // lane of the task that an error is about; nil means not known
}

// all issues every batch of the device and returns when all of them are done.
func (u *issueLoop) all() error {
	if u.job.record {
		if err := u.clock.begin(u.device, u.job); err != nil {
			return err
		}
	}
	if st, ok := u.Driver.(driver.Stater); ok {
		st.Begin(u.clock.base, u.job.record)
	}
	team := u.job.team
	idleSince := time.Time{}
	for !u.finished() {
		busy, err := u.turn()
		if err != nil {
			return err
		}
		if busy {
			idleSince = time.Time{}
			continue
		}
		if team.spin > 0 {
			if idleSince.IsZero() {
				idleSince = time.Now()
			}
			if !u.Properties.Reports || time.Since(idleSince) < team.spin {
				continue
			}
		}
		period := pollPeriod
		if u.Properties.Reports {
			period = driver.ReportPeriod
		}
		team.idle(&u.poller, period, func() bool {
			busy, err = u.turn()
			return busy || err != nil
		})
		if err != nil {
			return err
		}
	}
	if u.job.record {
		return u.clock.mark()
	}
	return nil
}

// finished reports whether every batch is done. If the run is stopped, only issued batches count.
func (u *issueLoop) finished() bool {
	stopped := u.job.team.stopped.Load()
	for _, l := range u.lanes {
		if l.ended < l.issued || l.issued < l.total && !stopped {
			return false
		}
	}
	return true
}

// turn collects finished batches once and issues those that can be.
func (u *issueLoop) turn() (busy bool, err error) {
	for _, l := range u.lanes {
		some, err := u.collect(l)
		if err != nil {
			return false, err
		}
		busy = busy || some
	}
	if u.job.record {
		if err := u.clock.keepNear(); err != nil {
			return false, err
		}
	}
	for _, l := range u.lanes {
		for l.issued < l.total && l.issued-l.ended < inFlight && !u.job.team.stopped.Load() && u.mayIssue(l) {
			u.lane = l
			if err := u.issue(l); err != nil {
				return false, err
			}
			u.lane = nil
			busy = true
		}
	}
	return busy, nil
}

// collect publishes the batches of a lane that are done.
func (u *issueLoop) collect(l *deviceLane) (some bool, err error) {
	before := l.ended
	for l.ended < l.issued {
		done, err := u.Driver.Done(l.ends[l.ended%inFlight])
		if err != nil {
			return false, err
		}
		if !done {
			break
		}
		l.ended++
	}
	if l.ended == before {
		return false, nil
	}
	seen := u.job.now()
	for n := before; n < l.ended; n++ {
		if _, step := l.at(n); !u.job.runs(step) {
			continue
		}
		_, round := l.batches.at(n)
		l.progress.note(u.job, int32(round), seen)
		if u.job.record {
			if err := u.note(l, n, seen); err != nil {
				return false, err
			}
		}
	}
	u.job.team.publish(l.id, l.batches.ended(l.ended))
	return true, nil
}

// note records the task of the batch with count n.
func (u *issueLoop) note(l *deviceLane, n int64, seen time.Duration) error {
	s := deviceSpan{Span: align.Span{Issued: l.issuedAt[n%inFlight], Seen: seen}}
	s.task, s.step = l.at(n)
	var err error
	if s.Start, err = u.clock.timeOf(l.starts[n%inFlight]); err != nil {
		return err
	}
	s.End, err = u.clock.timeOf(l.ends[n%inFlight])
	l.spans = append(l.spans, s)
	l.busy.add(s.step, s.End-s.Start)
	return err
}

// at is the first task of the batch with count n, and its step. With a lag that may be none of the run, in the first periods and behind the last step.
func (l *deviceLane) at(n int64) (task, step int32) {
	s, period := l.batches.at(n)
	it := &l.list[s.first]
	return it.task, int32(period) - it.lag
}

// mayIssue reports whether the predecessors of a lane's next batch have ended, or have been
// issued on this device. If no step of its period will be there, the lane is done.
func (u *issueLoop) mayIssue(l *deviceLane) bool {
	s, period := l.batches.at(l.issued)
	after := int32(period) >= int32(u.job.steps) || u.job.gate.over(int32(period)) // the last step
	if after && int32(period) >= int32(u.job.gate.steps(u.job.steps))+u.job.replay.maxLag {
		l.total = l.issued
		return false
	}
	it := &l.list[s.first]
	waits := u.job.replay.waits
	for k := it.firstWait; k < it.endWait; k++ {
		w := &waits[k]
		target := w.need + period*w.length
		if other := u.local[w.worker]; other >= 0 {
			if from := u.lanes[other]; from.issued < from.batches.needed(target) {
				return false
			}
		} else if u.job.team.members[w.worker].count.Load() < target {
			return false
		}
	}
	return after || u.job.granted(period) && u.job.gate.begin(int32(period))
}

// issue puts a lane's next batch on its stream.
func (u *issueLoop) issue(l *deviceLane) error {
	slot := l.issued % inFlight
	l.begun, l.within = false, 0
	if err := u.follow(l); err != nil {
		return err
	}
	l.issuedAt[slot] = u.job.now()
	if u.job.record {
		if err := u.prepare(l); err != nil {
			return err
		}
		if err := u.Driver.Record(l.stream, l.starts[slot]); err != nil {
			return err
		}
	}
	l.begun = true // a task is several calls, and the device may fail between them
	if err := u.startBatch(l); err != nil {
		return err
	}
	l.within = -1
	if err := u.Driver.Record(l.stream, l.ends[slot]); err != nil {
		return err
	}
	l.issued++
	return nil
}

// prepare puts before the start of a recorded task what the device does so that it can run.
func (u *issueLoop) prepare(l *deviceLane) error {
	st, ok := u.Driver.(driver.Stater)
	if !ok || l.Worker < 0 {
		return nil
	}
	task, step := l.at(l.issued)
	if !u.job.runs(step) {
		return nil
	}
	launch := u.job.graph.issues[task].launch
	if launch < 0 {
		return nil
	}
	return st.Prepare(l.stream, launch)
}

// follow makes a lane's stream wait for the predecessors of its next batch on this device.
func (u *issueLoop) follow(l *deviceLane) error {
	s, period := l.batches.at(l.issued)
	it := &l.list[s.first]
	l.within = s.first
	waits := u.job.replay.waits
	for k := it.firstWait; k < it.endWait; k++ {
		w := &waits[k]
		other := u.local[w.worker]
		if other < 0 {
			continue
		}
		from := u.lanes[other]
		if n := from.batches.needed(w.need + period*w.length); n > from.ended {
			if err := u.Driver.Wait(l.stream, from.ends[(n-1)%inFlight]); err != nil {
				return err
			}
		}
	}
	return nil
}

// startBatch issues the tasks of a lane's next batch.
func (u *issueLoop) startBatch(l *deviceLane) error {
	s, _ := l.batches.at(l.issued)
	_, step := l.at(l.issued)
	if !u.job.runs(step) {
		return nil
	}
	if s.captured != nil {
		return u.Driver.(driver.Capturer).Replay(l.stream, s.captured[int(step)%len(s.captured)])
	}
	for l.within = s.first; l.within < s.end; l.within++ {
		if err := u.start(l.stream, u.job.graph.issues[l.list[l.within].task].at(step)); err != nil {
			return err
		}
	}
	return nil
}

// start issues the copies and the launch of a task.
func (d *device) start(s driver.StreamID, t *deviceTask) error {
	for i := range t.copies {
		if err := d.Driver.Copy(s, &t.copies[i]); err != nil {
			return err
		}
	}
	if t.launch >= 0 {
		return d.Driver.Launch(s, t.launch)
	}
	return nil
}

// blame names the task that an error of the device is about. Mostly that is the task being
// issued. A lost device shows later: then it is the oldest task that was issued and is not known
// to be done, the likeliest one on a lane of launches. Of a batch it is the first task.
func (u *issueLoop) blame(err error) error {
	const issued, notIssued = "issued and not done", "not issued"
	var task, step int32
	var state string
	l, lost := u.lane, errors.Is(err, driver.ErrLost)
	switch old := u.oldest(); {
	case old != nil && (l == nil || lost):
		task, step = old.at(old.ended)
		state = issued
	case l == nil:
		return fmt.Errorf("execute: graph %q: %w", u.job.graph.graph.Name, &deviceError{u.name, err})
	case l.begun && (lost || l.within < 0):
		task, step = l.at(l.issued)
		state = issued
	default:
		_, step = l.at(l.issued)
		task, state = l.list[l.within].task, notIssued
	}
	e := u.job.taskError(task, step, err)
	e.Device, e.State = u.name, state
	return e
}

// oldest is the lane whose unfinished batch was issued first. Nil means that there is none. A lost device
// may still know that some of its batches are done.
func (u *issueLoop) oldest() (l *deviceLane) {
	for _, other := range u.lanes {
		for other.ended < other.issued {
			if done, _ := u.Driver.Done(other.ends[other.ended%inFlight]); !done {
				break
			}
			other.ended++
		}
		if other.ended < other.issued && (l == nil || other.issuedAt[other.ended%inFlight] < l.issuedAt[l.ended%inFlight]) {
			l = other
		}
	}
	return l
}

// drain waits after an error for everything issued, so that the device rests when the run is
// over. If the device fails again, there is nothing left to wait for.
func (u *issueLoop) drain() {
	for _, l := range u.lanes {
		if err := u.Finish(l.stream); err != nil {
			return
		}
	}
}
