package emulated

import (
	"runtime"
	"sync/atomic"
	"time"

	"dahl/execute/driver"
	"dahl/execute/host"
	"dahl/platform"
)

// queueLength is how many unfinished operations a stream holds. Issuing more waits.
const queueLength = 1024

// fullPause is the time between two looks at a stream that is full.
const fullPause = 50 * time.Microsecond

// stream does operations in their order, on a goroutine of its own. Only one goroutine
// issues them.
type stream struct {
	device *device
	cpu    int // -1 means any
	parker host.Parker
	waits  atomic.Pointer[event] // the event for which the stream is parked or about to be

	ran platform.WorkerID // whose task has ended without a record since; -1 means none

	ops            []operation // a ring
	issued, passed atomic.Int64
}

// operation is one operation on a stream.
type operation struct {
	kind   opKind
	call   *call
	lost   bool // the device is lost at this launch
	copy   *driver.Copy
	to     []byte // of the copy or the fill
	from   []byte
	value  byte
	event  *event
	number int64 // of the record
}

type opKind uint8

const (
	launchOp opKind = iota
	copyOp
	fillOp
	recordOp
	waitOp
	prepareOp
)

// push appends an operation.
func (s *stream) push(op operation) {
	n := s.issued.Load()
	for n-s.passed.Load() == int64(len(s.ops)) {
		if s.device.failed.Load() != nil {
			return
		}
		time.Sleep(fullPause)
	}
	s.ops[n%int64(len(s.ops))] = op
	s.issued.Store(n + 1)
	s.parker.Wake()
}

// main does the issued operations until the device is closed or lost.
func (s *stream) main() {
	if s.cpu >= 0 {
		runtime.LockOSThread() // not unlocked: the thread ends with its CPU
		_ = host.Pin(s.cpu)    // a stream that runs elsewhere is slower, not wrong
	}
	defer func() {
		if cause := recover(); cause != nil {
			s.device.lose(driver.Recovered(cause))
		}
	}()
	for n := int64(0); s.until(&s.issued, n+1); n++ {
		op := &s.ops[n%int64(len(s.ops))]
		if !s.do(op) {
			return
		}
		s.passed.Store(n + 1)
	}
}

// until waits for a count; false means that the device is closed or lost.
func (s *stream) until(count *atomic.Int64, target int64) bool {
	for count.Load() < target {
		if s.device.closed.Load() || s.device.failed.Load() != nil {
			return false
		}
		s.parker.Park()
	}
	return true
}

// do does one operation; false means that the device is closed or lost.
func (s *stream) do(op *operation) bool {
	switch op.kind {
	case launchOp:
		if op.lost {
			s.device.lose(errAsTold)
			return false
		}
		return s.launch(op.call)
	case prepareOp:
		return s.device.states.admit(op.call)
	case copyOp:
		s.move(op)
	case fillOp:
		for i := range op.to {
			op.to[i] = op.value
		}
	case recordOp:
		op.event.at.Store(int64(s.device.now()))
		if s.ran >= 0 {
			s.device.states.recorded(s.ran)
			s.ran = -1
		}
		op.event.passed.Store(op.number)
		s.device.report(op.event)
	case waitOp:
		s.waits.Store(op.event)
		defer s.waits.Store(nil)
		return s.until(&op.event.passed, op.number)
	}
	return true
}

// launch runs a call, for at least its time.
func (s *stream) launch(c *call) bool {
	states := s.device.states
	if c.worker < 0 {
		states = nil
	}
	if states != nil && !states.admit(c) {
		return false
	}
	begin := time.Now()
	c.run(&c.call)
	sleepUntil(begin.Add(c.least))
	if states != nil {
		states.ended(c.worker)
		s.ran = c.worker
	}
	return true
}

// move copies rows and takes at least the time of the route. If the transfer has several parts,
// each takes the time of its share of the bytes, and the first also the latency.
func (s *stream) move(op *operation) {
	c := op.copy
	p, from, to := s.device.platform, c.From.Memory, c.To.Memory
	latency := p.RouteTime(from, to, 0)
	takes := time.Duration(float64(p.RouteTime(from, to, c.Bytes)-latency) * float64(c.Rows*c.RowBytes) / float64(max(c.Bytes, 1)))
	if c.First {
		takes += latency
	}
	begin := time.Now()
	op.copyRows()
	sleepUntil(begin.Add(takes))
}

// copyRows copies row by row.
func (op *operation) copyRows() {
	c := op.copy
	if c.RowBytes == 0 {
		return
	}
	for r := range c.Rows {
		copy(op.to[r*c.To.Pitch:][:c.RowBytes], op.from[r*c.From.Pitch:][:c.RowBytes])
	}
}

// sleepUntil returns at a moment or a little later. It leaves the core to others except for the
// last moments, in which a sleep would last too long.
func sleepUntil(t time.Time) {
	for {
		left := time.Until(t)
		switch {
		case left <= 0:
			return
		case left > 2*sleepSlack:
			time.Sleep(left - sleepSlack)
		default:
			runtime.Gosched()
		}
	}
}

// sleepSlack is how much longer than asked a sleep may last.
const sleepSlack = 100 * time.Microsecond
