package execute

import (
	"sync/atomic"
	"time"

	"dahl/execute/host"
)

// spinLimit is how long a wait spins before it parks. Parking and waking a locked thread costs
// some 10 µs, so a short wait spins. A long one would keep the rest of the process from the core.
const spinLimit = 50 * time.Microsecond

// spinLoads is how many times a spinning wait looks before each look at the clock. It takes half a
// microsecond. Most hand-offs take less.
const spinLoads = 1000

// team lets the lanes of one run wait for each other. The package's documentation has the
// protocol and its proof.
type team struct {
	members []member  // by lane
	pollers []*poller // of the devices
	spin    time.Duration
	parked  atomic.Int32 // members and pollers that are parked or about to be
	stopped atomic.Bool

	// Of several ranks: the goroutine of the messages, and by lane whether it publishes the counts.
	post   *poller
	remote []bool
}

// member is a worker's part of the team. Its count only grows. It has two cache lines of its own,
// since processors fetch them in pairs.
type member struct {
	count atomic.Int64
	_     [120]byte

	// While parked: whose count it waits for (1 + worker; 0 means nobody's), and for which count.
	waitsFor atomic.Int32
	target   atomic.Int64
	parker   host.Parker
	_        [88]byte
}

// poller is the part of a device in the team, or of the goroutine of messages. It waits at once for several counts and for a device or messages.
type poller struct {
	asleep atomic.Bool // it is parked or about to be
	parker *host.Parker
	wants  []atomic.Int64 // by lane: the count that wakes it; nil means any
}

func newTeam(lanes int, spin time.Duration, pollers ...*poller) *team {
	return &team{members: make([]member, lanes), pollers: pollers, spin: spin}
}

// publish sets the count of a worker and wakes the lanes that wait for it.
func (t *team) publish(worker int, count int64) {
	t.members[worker].count.Store(count)
	if t.parked.Load() == 0 {
		return
	}
	for i := range t.members {
		m := &t.members[i]
		if m.waitsFor.Load() == int32(worker)+1 && m.target.Load() <= count {
			m.parker.Wake()
		}
	}
	for _, p := range t.pollers {
		if p.asleep.Load() && (p.wants == nil || count >= p.wants[worker].Load()) {
			p.parker.Wake()
		}
	}
}

// starves reports whether a lane waits for a count that comes from another rank.
func (t *team) starves() bool {
	for i := range t.members {
		m := &t.members[i]
		if of := m.waitsFor.Load(); of > 0 && t.remote[of-1] && t.members[of-1].count.Load() < m.target.Load() {
			return true
		}
	}
	return false
}

// idle parks a poller until a count changes, its device reports something or a limit passes. It
// does not park if work finds something to do.
func (t *team) idle(p *poller, limit time.Duration, work func() bool) {
	p.asleep.Store(true)
	t.parked.Add(1)
	if !work() && !t.stopped.Load() {
		p.parker.ParkFor(limit)
	}
	t.parked.Add(-1)
	p.asleep.Store(false)
}

// await returns true when the count of another worker has reached the target, and false if the
// run has been stopped.
func (t *team) await(self, other int, target int64) bool {
	count := &t.members[other].count
	if count.Load() >= target || t.spinFor(count, target) {
		return !t.stopped.Load()
	}
	m := &t.members[self]
	m.target.Store(target)
	m.waitsFor.Store(int32(other) + 1)
	t.parked.Add(1)
	if t.remote != nil && t.remote[other] && t.post.asleep.Load() {
		t.post.parker.Wake()
	}
	for count.Load() < target && !t.stopped.Load() {
		m.parker.Park()
	}
	t.parked.Add(-1)
	m.waitsFor.Store(0)
	return !t.stopped.Load()
}

// spinFor looks at a count for about as long as the team's limit.
func (t *team) spinFor(count *atomic.Int64, target int64) bool {
	if t.spin == 0 {
		return false
	}
	var begin time.Time
	for {
		for range spinLoads {
			if count.Load() >= target {
				return true
			}
		}
		switch {
		case t.stopped.Load():
			return false
		case begin.IsZero():
			begin = time.Now()
		case time.Since(begin) >= t.spin:
			return false
		}
	}
}

// stop ends all waits, now and later.
func (t *team) stop() {
	t.stopped.Store(true)
	for i := range t.members {
		t.members[i].parker.Wake()
	}
	for _, p := range t.pollers {
		p.parker.Wake()
	}
}
