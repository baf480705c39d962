package execute

import (
	"fmt"
	"math"
	"time"

	"dahl/dag"
	"dahl/execute/mpi"
	"dahl/platform"
	"dahl/schedule"
)

// rankedRun is this rank's part of a run in which other ranks take part. The counts of lanes go where somebody waits
// for them, and the bytes of a transfer go when the waits before it are met. So the rows where they go are free, and are written at
// once.
//
// Rank 0 grants steps to the others, one beyond the step that it is in itself. So when its gate closes the
// furthest step that anybody has begun is known there.
type rankedRun struct {
	*Ranks
	*Runner
	job      *job
	watched  []watched
	counts   [][]int64 // by watched lane and peer: told so far
	sends    []*sending
	arrives  []*arriving
	given    int64 // of rank 0: steps that the others may begin
	lastSaid bool  // the others know of the closed gate
	idle     time.Time
}

// wireDepth is how many transfers of a wire may be under way.
const wireDepth = 2

// flight is a transfer under way.
type flight struct {
	half
	memory []byte        // where rows are gathered
	under  []mpi.Request // messages not yet done
	start  time.Duration
	rests  bool // there is no such step, and nothing goes
}

// onWire is one end of a wire in a run.
type onWire struct {
	lane        int
	list        []item
	begun, done int64
	flights     [wireDepth]flight
}

type sending struct {
	onWire
	to    int
	total int64
}

type arriving struct {
	onWire
	from      *peer
	announced []entry
	spans     []schedule.Span
}

// newRankedRun prepares the part of a job.
func (r *Runner) newRankedRun(j *job) *rankedRun {
	x := &rankedRun{Ranks: r.opt.Ranks, Runner: r, job: j, watched: j.replay.watched}
	for i := range x.watched {
		x.counts = append(x.counts, make([]int64, len(x.watched[i].peers)))
	}
	own := len(r.lanes) - len(r.part.wires)
	for i, w := range r.part.wires {
		at := onWire{lane: own + i, list: j.replay.lists[own+i]}
		switch {
		case len(at.list) == 0:
		case w.from == r.part.rank:
			x.sends = append(x.sends, &sending{onWire: at, to: w.to, total: int64(len(at.list)) * int64(j.steps+int(j.replay.maxLag))})
		case w.to == r.part.rank:
			x.arrives = append(x.arrives, &arriving{onWire: at, from: x.peers[w.from]})
		}
	}
	return x
}

// all does the part of the job. It is called on the goroutine of the ranks.
func (x *rankedRun) all() {
	defer x.job.done.Done()
	x.sequence, x.stamp, x.run = x.job.sequence, x.job.sequence, x
	defer func() { x.run = nil }()
	if x.failed != nil {
		x.job.fail(x.failed)
		return
	}
	early := x.early
	x.early = nil
	for _, e := range early {
		x.Ranks.handle(e)
	}
	for x.failed == nil && !x.finished() {
		busy, err := x.turn()
		if err != nil {
			x.fail(err)
		}
		if x.job.team.stopped.Load() && x.failed == nil {
			x.fail(x.whyStopped())
		}
		x.restInRun(busy)
	}
}

// whyStopped is why this rank's lanes have stopped.
func (x *rankedRun) whyStopped() error {
	if failure := x.job.failure.Load(); failure != nil {
		return *failure
	}
	return fmt.Errorf("the run was ended")
}

// How often messages are looked for: while a lane waits for them, while transfers are under way, and while all lanes work. A lane wakes the
// goroutine when it begins to wait.
const (
	hungryPeriod = 20 * time.Microsecond
	flightPeriod = 50 * time.Microsecond
	lanesPeriod  = 200 * time.Microsecond
)

// restInRun lets the lanes have the cores where there is nothing to do. A lane that waits for messages leaves its core to them for a while.
func (x *rankedRun) restInRun(busy bool) {
	now := time.Now()
	if busy {
		x.idle = now
	}
	t, period := x.job.team, lanesPeriod
	starves := t.starves()
	if (starves || t.spin > 0) && now.Sub(x.idle) <= spinLimit {
		return
	}
	if x.underWay() {
		period = flightPeriod
	}
	if starves {
		period = hungryPeriod
	}
	x.want()
	t.idle(&x.post, period, func() bool {
		busy, err := x.turn() // counts may have come before they were wanted
		if err != nil {
			x.fail(err)
		}
		return busy || x.due()
	})
}

// underWay reports whether transfers are.
func (x *rankedRun) underWay() bool {
	for _, s := range x.sends {
		if s.done < s.begun {
			return true
		}
	}
	for _, a := range x.arrives {
		if a.done < a.begun {
			return true
		}
	}
	return false
}

// want notes which counts of lanes are something to send, or the end of this rank's part.
func (x *rankedRun) want() {
	j, wants := x.job, x.post.wants
	for lane := range wants {
		wants[lane].Store(math.MaxInt64)
	}
	lower := func(lane int, count int64) {
		if count > j.team.members[lane].count.Load() {
			wants[lane].Store(min(wants[lane].Load(), count))
		}
	}
	periods := int64(j.gate.steps(j.steps) + int(j.replay.maxLag))
	for lane, list := range j.replay.lists {
		if n := int64(len(list)); n > 0 && x.mine[lane] {
			if lower(lane, n*periods); x.Rank == 0 && x.given < int64(j.steps) {
				lower(lane, n*(x.given-1))
			}
		}
	}
	for i := range x.watched {
		for k, told := range x.counts[i] {
			lower(x.watched[i].lane, x.watched[i].peers[k].after(told))
		}
	}
	for _, s := range x.sends {
		if s.begun < s.total && s.begun-s.done < wireDepth {
			it, period := &s.list[s.begun%int64(len(s.list))], s.begun/int64(len(s.list))
			for _, w := range j.replay.waits[it.firstWait:it.endWait] {
				lower(int(w.worker), w.need+period*w.length)
			}
		}
	}
}

// due reports whether a count is one that want has noted.
func (x *rankedRun) due() bool {
	for lane := range x.post.wants {
		if x.job.team.members[lane].count.Load() >= x.post.wants[lane].Load() {
			return true
		}
	}
	return false
}

// turn does once what can be done.
func (x *rankedRun) turn() (busy bool, err error) {
	busy = x.Ranks.turn()
	if x.Rank == 0 {
		x.grant()
	}
	for _, s := range x.sends {
		some, err := x.send(s)
		if err != nil {
			return busy, err
		}
		busy = busy || some
	}
	for _, a := range x.arrives {
		some, err := x.receive(a)
		if err != nil {
			return busy, err
		}
		busy = busy || some
	}
	if x.tell() {
		busy = true
	}
	for p := range x.others {
		if len(p.queue) > 0 {
			if err := x.flush(p, x.turned); err != nil {
				return busy, err
			}
		}
	}
	return busy, nil
}

// grant lets the other ranks begin steps, or tells them the last one.
func (x *rankedRun) grant() {
	j := x.job
	if j.gate.isClosed() {
		if last := int64(j.gate.steps(j.steps)) - 1; !x.lastSaid {
			x.lastSaid = true
			x.broadcast(entry{Kind: entryLast, Value: last})
		}
		return
	}
	reached := int64(0) // steps that a lane has ended
	for lane, list := range j.replay.lists {
		if len(list) > 0 && x.waiter(lane) == x.part.rank {
			reached = max(reached, j.team.members[lane].count.Load()/int64(len(list)))
		}
	}
	if want := min(int64(j.steps), reached+2); want > x.given && j.gate.begin(int32(want-1)) {
		x.given = want
		x.broadcast(entry{Kind: entryCount, Lane: int32(len(x.lanes)), Value: want})
	}
}

func (x *rankedRun) broadcast(e entry) {
	for p := range x.others {
		p.send(e)
	}
}

// tell sends the counts for which others wait.
func (x *rankedRun) tell() (some bool) {
	for i := range x.watched {
		w := &x.watched[i]
		count := x.job.team.members[w.lane].count.Load()
		for k := range w.peers {
			if latest := w.peers[k].latest(count); latest > x.counts[i][k] {
				x.counts[i][k], some = latest, true
				x.peers[w.peers[k].rank].send(entry{Kind: entryCount, Lane: int32(w.lane), Value: latest})
			}
		}
	}
	return some
}

// handle takes what another rank says of this run.
func (x *rankedRun) handle(e received) {
	lanes := len(x.lanes)
	switch {
	case e.Kind == entryLast:
		x.job.gate.begin(int32(e.Value))
		x.job.gate.close()
		x.job.team.publish(lanes, math.MaxInt64)
	case int(e.Lane) < lanes-len(x.part.wires) || int(e.Lane) == lanes || x.owner(int(e.Lane)) != x.part.rank:
		x.job.team.publish(int(e.Lane), e.Value)
	default:
		for _, a := range x.arrives {
			if a.lane == int(e.Lane) {
				a.announced = append(a.announced, e.entry)
			}
		}
	}
}

// at is the item with a count, and its step.
func (w *onWire) at(n int64) (it *item, step int32) {
	it = &w.list[n%int64(len(w.list))]
	return it, int32(n/int64(len(w.list))) - it.lag
}

// send begins the transfers of a wire whose waits are met, and publishes earlier ones when they have gone.
func (x *rankedRun) send(s *sending) (busy bool, err error) {
	for s.begun < s.total && s.begun-s.done < wireDepth && !x.job.team.stopped.Load() && x.maySend(s) {
		f := &s.flights[s.begun%wireDepth]
		it, step := s.at(s.begun)
		kind := entryCount
		if f.rests = !x.job.runs(step); !f.rests {
			kind = entryData
			f.half = halfOf(x.job.graph.issues[it.task].at(step).copies, true)
			b := f.half.whole
			if b == nil {
				b = x.room(f)
				f.half.gather(b)
			}
			if err := x.sendAll(s.to, laneTag+s.lane, b, &f.under); err != nil {
				return busy, err
			}
		}
		s.begun++
		busy = true
		x.peers[s.to].send(entry{Kind: kind, Lane: int32(s.lane), Value: s.begun, At: int64(x.job.now())})
	}
	return x.landed(&s.onWire, func(*flight, int64) {}) || busy, x.failed
}

// room is memory for the rows of a transfer.
func (x *rankedRun) room(f *flight) []byte {
	if int64(len(f.memory)) < f.bytes {
		f.memory = x.port.Alloc(f.bytes)
	}
	return f.memory[:f.bytes]
}

// landed publishes the transfers that are done, in their order.
func (x *rankedRun) landed(w *onWire, after func(f *flight, count int64)) (some bool) {
	before := w.done
	for w.done < w.begun {
		f := &w.flights[w.done%wireDepth]
		if err := x.forgetDone(&f.under); err != nil {
			x.fail(err)
			return some
		}
		if len(f.under) > 0 {
			break
		}
		f.under = f.under[:0]
		w.done++
		after(f, w.done)
	}
	if w.done > before {
		x.job.team.publish(w.lane, w.done)
	}
	return w.done > before
}

// maySend reports whether the waits of a wire's next transfer are met, and its step may begin. If no step of its
// period will be there, the wire is done.
func (x *rankedRun) maySend(s *sending) bool {
	j := x.job
	period := s.begun / int64(len(s.list))
	after := period >= int64(j.steps) || j.gate.over(int32(period))
	if after && period >= int64(j.gate.steps(j.steps))+int64(j.replay.maxLag) {
		s.total = s.begun
		return false
	}
	it := &s.list[s.begun%int64(len(s.list))]
	for _, w := range j.replay.waits[it.firstWait:it.endWait] {
		if j.team.members[w.worker].count.Load() < w.need+period*w.length {
			return false
		}
	}
	return after || j.granted(period) && j.gate.begin(int32(period))
}

// receive takes the announced transfers of a wire, and publishes the ones that have come.
func (x *rankedRun) receive(a *arriving) (busy bool, err error) {
	for len(a.announced) > 0 && a.begun-a.done < wireDepth {
		e := a.announced[0]
		a.announced = a.announced[1:]
		f := &a.flights[a.begun%wireDepth]
		it, step := a.at(a.begun)
		if f.rests = e.Kind == entryCount; !f.rests {
			f.start, f.half = time.Duration(e.At), halfOf(x.job.graph.issues[it.task].at(step).copies, false)
			b := f.half.whole
			if b == nil {
				b = x.room(f)
			}
			if err := x.receiveAll(a.from.rank, laneTag+a.lane, b, &f.under); err != nil {
				return busy, err
			}
		}
		a.begun++
		busy = true
	}
	return x.landed(&a.onWire, func(f *flight, count int64) { x.arrived(a, f, count) }) || busy, x.failed
}

// arrived puts the rows of a transfer in their places, and notes it.
func (x *rankedRun) arrived(a *arriving, f *flight, count int64) {
	if f.rests {
		return
	}
	if f.half.whole == nil {
		f.half.scatter(f.memory[:f.bytes])
	}
	if it, step := a.at(count - 1); x.job.record {
		a.spans = append(a.spans, schedule.Span{Task: dag.TaskID(it.task), Step: step, Worker: platform.WorkerID(a.lane), Start: f.start, End: max(f.start, x.job.now())})
	}
}

// finished reports whether this rank's part of every step is done, and told to the others.
func (x *rankedRun) finished() bool {
	j := x.job
	periods := int64(j.gate.steps(j.steps) + int(j.replay.maxLag))
	if x.Rank == 0 && !x.lastSaid && (x.given < int64(j.steps) || j.gate.isClosed()) {
		return false
	}
	for lane, list := range j.replay.lists {
		if x.mine[lane] && j.team.members[lane].count.Load() < int64(len(list))*periods {
			return false
		}
	}
	if x.tell() {
		return false
	}
	for p := range x.others {
		if len(p.queue) > 0 {
			return false
		}
	}
	return true
}
