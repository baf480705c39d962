package execute

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"dahl/execute/host"
	"dahl/kernels/calls"
	"dahl/platform"
	"dahl/schedule"
)

// Emulation is how an emulated device differs from one that has its memory for itself and the
// host's clock. It is for tests. The platform says how the device fails.
type Emulation struct {
	// TakenBytes of the memory belong to somebody else.
	TakenBytes int64
	// The device's clock shows ClockOffset when it is opened and gains ClockDrift
	// seconds per second.
	ClockOffset time.Duration
	ClockDrift  float64
}

// emulated is a device made of goroutines. Its memory is apart from the host's, its streams are
// goroutines, and its kernels are those of CPUs. A task ends neither earlier than the platform's
// model says nor faster than the core runs it. A copy takes at least the time of its route. So a
// machine without a GPU runs the same paths, and the race detector finds missing orders between
// streams.
type emulated struct {
	*opener
	memory platform.MemoryID
	traits Emulation
	fault  platform.DeviceFault
	notify func() // called when an event is done, or the device has failed

	captures  [][]emulatedOp
	capturing bool // into the last of them

	used     int64
	streams  []*emulatedStream
	events   []*emulatedEvent
	calls    []*emulatedCall
	launched int64
	epoch    time.Time
	states   *emulatedStates // nil: nothing ever changes

	failed atomic.Pointer[error]
	closed atomic.Bool
	ended  sync.WaitGroup // the streams' goroutines
}

// emulatedSpace is the address space of all emulated devices of a runner. An address consists of
// 1 + the memory, the arena in it, and the offset. None is an address of this process, so using
// one as such fails at once. Devices reserve and close one after the other.
type emulatedSpace [platform.MaxMemories][][]byte

const (
	arenaBits  = 40
	memoryBits = arenaBits + 4
	maxArenas  = 1 << (memoryBits - arenaBits)
)

// at is the memory from address a to the end of its arena.
func (s *emulatedSpace) at(a deviceAddr) []byte {
	memory, arena := int(a>>memoryBits)-1, int(a>>arenaBits)%maxArenas
	return s[memory][arena][a&(1<<arenaBits-1):]
}

// emulatedEvent is a mark on a stream. Records are numbered, so that a wait means the record
// issued last before it.
type emulatedEvent struct {
	recorded int64        // number of the last record issued
	passed   atomic.Int64 // number of the last record done
	at       atomic.Int64 // time of the last record done, in nanoseconds of the device's clock
}

// emulatedCall is a kernel call bound to the device's memory.
type emulatedCall struct {
	run   func(*calls.Call)
	call  calls.Call
	least time.Duration

	worker platform.WorkerID // -1: none of a plan or policy
	clock  platform.ClockID  // at which it runs
	sleeps int32             // what the unit does after it, as an index plus 1
}

// openEmulated opens an emulated device. notify is called from other goroutines.
func openEmulated(o *opener, dev *platform.Device, notify func()) (driver, error) {
	d := &emulated{opener: o, memory: dev.Memory, traits: o.emulation[dev.Name], fault: dev.Fault, notify: notify, epoch: time.Now()}
	d.states = newEmulatedStates(d)
	return d, nil
}

func (d *emulated) properties() deviceProperties {
	m := &d.platform.Memories[d.memory]
	return deviceProperties{Name: "emulated " + m.Name, CapacityBytes: m.CapacityBytes, FreeBytes: m.CapacityBytes - d.traits.TakenBytes, Reports: true}
}

func (d *emulated) reserve(bytes int64) (deviceAddr, error) {
	m := &d.platform.Memories[d.memory]
	if free := m.CapacityBytes - d.traits.TakenBytes - d.used; m.CapacityBytes > 0 && bytes > free || bytes >= 1<<arenaBits {
		return 0, fmt.Errorf("reserve %d bytes of memory %q, which has %d left: %w", bytes, m.Name, free, errDeviceMemory)
	}
	arenas := &d.space[d.memory]
	if len(*arenas) == maxArenas {
		panic("execute: an emulated device has no more arenas")
	}
	d.used += bytes
	*arenas = append(*arenas, host.AlignedBytes(bytes))
	return deviceAddr(d.memory+1)<<memoryBits + deviceAddr(len(*arenas)-1)<<arenaBits, nil
}

// pin has nothing to do: the streams are goroutines of this process.
func (d *emulated) pin([]byte) error { return nil }

func (d *emulated) newStream(copies bool) (streamID, error) {
	cpu := -1
	if !copies && len(d.cores) > 0 {
		cpu, d.cores = d.cores[0], d.cores[1:]
	}
	s := &emulatedStream{device: d, cpu: cpu, ran: -1, ops: make([]emulatedOp, emulatedQueue)}
	d.streams = append(d.streams, s)
	d.ended.Go(s.main)
	return streamID(len(d.streams) - 1), nil
}

func (d *emulated) newEvent() (eventID, error) {
	d.events = append(d.events, &emulatedEvent{})
	return eventID(len(d.events) - 1), nil
}

func (d *emulated) bind(c *deviceCall) (launchID, error) {
	e := &emulatedCall{run: c.variant.Run(c.spec.Type), least: c.least, worker: c.worker, clock: c.clock, sleeps: c.sleeps}
	e.call.Params = c.params
	for _, o := range c.args {
		e.call.Args = append(e.call.Args, calls.Bind(d.pointer(o.base, o.buffer.Bytes()), o.buffer, o.box, o.mode))
	}
	if c.variant.WorkspaceBytes != nil {
		e.call.Work = d.space.at(c.work)[:c.variant.WorkspaceBytes(c.spec)]
	}
	d.calls = append(d.calls, e)
	return launchID(len(d.calls) - 1), nil
}

// pointer is where bytes begin that lie wholly in one of the device's arenas.
func (d *emulated) pointer(at deviceAddr, bytes int64) unsafe.Pointer {
	if platform.MemoryID(at>>memoryBits)-1 != d.memory {
		panic("execute: a call is bound to another memory")
	}
	return unsafe.Pointer(unsafe.SliceData(d.space.at(at)[:bytes]))
}

func (d *emulated) launch(s streamID, l launchID) error {
	return d.issue(s, emulatedOp{kind: launchOp, call: d.calls[l]})
}

func (d *emulated) copy(s streamID, c *deviceCopy) error {
	return d.issue(s, emulatedOp{kind: copyOp, copy: c, to: d.span(&c.to, c), from: d.span(&c.from, c)})
}

// span is the bytes of a copy in one memory, from its first to its last.
func (d *emulated) span(p *plane, c *deviceCopy) []byte {
	if c.rows*c.rowBytes == 0 {
		return nil
	}
	bytes := (c.rows-1)*p.pitch + c.rowBytes
	if p.host != nil {
		return unsafe.Slice((*byte)(p.host), bytes)
	}
	return d.space.at(p.device)[:bytes]
}

func (d *emulated) fill(s streamID, at deviceAddr, bytes int64, value byte) error {
	return d.issue(s, emulatedOp{kind: fillOp, to: d.space.at(at)[:bytes], value: value})
}

func (d *emulated) record(s streamID, e eventID) error {
	event := d.events[e]
	event.recorded++
	return d.issue(s, emulatedOp{kind: recordOp, event: event, number: event.recorded})
}

func (d *emulated) wait(s streamID, e eventID) error {
	event := d.events[e]
	return d.issue(s, emulatedOp{kind: waitOp, event: event, number: event.recorded})
}

func (d *emulated) done(e eventID) (bool, error) {
	event := d.events[e]
	return event.passed.Load() >= event.recorded, d.failure()
}

func (d *emulated) elapsed(from, to eventID) (time.Duration, error) {
	return time.Duration(d.events[to].at.Load() - d.events[from].at.Load()), d.failure()
}

func (d *emulated) close() error {
	d.closed.Store(true)
	d.wakeStreams()
	d.ended.Wait()
	d.space[d.memory] = nil
	return nil
}

// now is the device's clock.
func (d *emulated) now() int64 { return d.clockAt(time.Since(d.epoch)) }

// clockAt is the device's clock some time after it was opened.
func (d *emulated) clockAt(t time.Duration) int64 {
	return int64(d.traits.ClockOffset) + int64(t) + int64(float64(t)*d.traits.ClockDrift)
}

func (d *emulated) begin(base eventID, record bool) {
	if d.states == nil {
		return
	}
	zero := int64(0)
	if record {
		zero = d.events[base].at.Load()
	}
	d.states.begin(record, zero)
}

func (d *emulated) prepare(s streamID, l launchID) error {
	if d.states == nil {
		return nil
	}
	return d.issue(s, emulatedOp{kind: prepareOp, call: d.calls[l]})
}

func (d *emulated) changes() []schedule.Change {
	if d.states == nil {
		return nil
	}
	return d.states.changes()
}

// capture lists operations instead of handing them to their stream.
func (d *emulated) capture(_ streamID, issue func() error) (captureID, error) {
	d.captures, d.capturing = append(d.captures, nil), true
	err := issue()
	d.capturing = false
	return captureID(len(d.captures) - 1), err
}

func (d *emulated) replay(s streamID, c captureID) error {
	for _, op := range d.captures[c] {
		if err := d.issue(s, op); err != nil {
			return err
		}
	}
	return nil
}

// issue hands an operation to a stream.
func (d *emulated) issue(s streamID, op emulatedOp) error {
	if err := d.failure(); err != nil {
		return err
	}
	if d.capturing {
		last := &d.captures[len(d.captures)-1]
		*last = append(*last, op)
		return nil
	}
	if op.kind == launchOp {
		d.launched++
		op.lost = d.fault.Kind != "" && d.launched == int64(d.fault.After)+1
		if op.lost && d.fault.Kind == platform.FaultMemory {
			return fmt.Errorf("launch %d: %w, %w", d.launched, errDeviceMemory, errAsTold)
		}
	}
	d.streams[s].push(op)
	return nil
}

// failure is why the device has stopped; nil while it works.
func (d *emulated) failure() error {
	if err := d.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// lose stops the device. The first cause is kept.
func (d *emulated) lose(cause error) {
	err := fmt.Errorf("%w: %w", errDeviceLost, cause)
	d.failed.CompareAndSwap(nil, &err)
	d.wakeStreams()
	d.notify()
}

// wakeStreams lets the streams see that the device is closed or lost.
func (d *emulated) wakeStreams() {
	for _, s := range d.streams {
		s.parker.Wake()
	}
	if st := d.states; st != nil {
		st.mu.Lock()
		st.turn.Broadcast()
		st.mu.Unlock()
	}
}

// report wakes those who wait for an event. It leaves others alone, since the race detector would
// take a wake-up for an order.
func (d *emulated) report(e *emulatedEvent) {
	for _, s := range d.streams {
		if s.waits.Load() == e {
			s.parker.Wake()
		}
	}
	d.notify()
}

var errAsTold = errors.New("as its fault in the platform says")
