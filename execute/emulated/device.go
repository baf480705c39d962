package emulated

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"dahl/execute/driver"
	"dahl/execute/host"
	"dahl/kernels/calls"
	"dahl/platform"
	"dahl/schedule"
)

// device is a device made of goroutines. Its memory is apart from the host's, its streams are
// goroutines, and it runs the kernels of CPUs. A task ends neither earlier than the platform's model
// says nor faster than the core runs it. A copy takes at least the time of its route. So a machine
// without a GPU runs the same paths, and the race detector finds missing orders between streams.
type device struct {
	*common
	memory platform.MemoryID
	fault  platform.DeviceFault
	notify func() // called when an event is done, or the device has failed

	captures  [][]operation
	capturing bool // into the last of them

	used     int64
	streams  []*stream
	events   []*event
	calls    []*call
	launched int64
	epoch    time.Time
	states   *states // nil if nothing ever changes

	failed atomic.Pointer[error]
	closed atomic.Bool
	ended  sync.WaitGroup // the streams' goroutines
}

// common is shared by the devices of a platform.
type common struct {
	platform *platform.Platform
	pace     pace
	space    space
	cores    []int // CPUs that nobody has
}

// Backend opens emulated devices.
var Backend = driver.Backend{On: func(p *platform.Platform, cores []int) driver.Opener {
	c := &common{platform: p, pace: paceOf(p), space: make(space, len(p.Memories)), cores: cores}
	return func(dev *platform.Device, notify func()) (driver.Driver, error) {
		d := &device{common: c, memory: dev.Memory, fault: dev.Fault, notify: notify, epoch: time.Now()}
		d.states = newStates(d)
		return d, nil
	}
}}

// space is the address space of the devices of a platform. An address consists of
// 1 + the memory, the arena in it, and the offset. None is an address of this process, so using
// one as such fails at once. Devices reserve and close one after the other.
type space [][][]byte

const (
	arenaBits  = 40
	memoryBits = arenaBits + 4
	maxArenas  = 1 << (memoryBits - arenaBits)
)

// at is the memory from address a to the end of its arena.
func (s *space) at(a driver.Address) []byte {
	memory, arena := int(a>>memoryBits)-1, int(a>>arenaBits)%maxArenas
	return (*s)[memory][arena][a&(1<<arenaBits-1):]
}

// event is a mark on a stream. Records are numbered, so that a wait means the record
// issued last before it.
type event struct {
	recorded int64        // number of the last record issued
	passed   atomic.Int64 // number of the last record done
	at       atomic.Int64 // when the last record was done, in nanoseconds after the opening
}

// call is a kernel call bound to the device's memory.
type call struct {
	run   func(*calls.Call)
	call  calls.Call
	least time.Duration

	worker platform.WorkerID // -1 means none of a plan or policy
	clock  platform.ClockID  // at which it runs
	sleeps int32             // what the unit does after it, as an index plus 1
}

func (d *device) Properties() driver.Properties {
	m := &d.platform.Memories[d.memory]
	return driver.Properties{Name: "emulated " + m.Name, CapacityBytes: m.CapacityBytes, FreeBytes: m.CapacityBytes, Reports: true}
}

func (d *device) Reserve(bytes int64) (driver.Address, error) {
	m := &d.platform.Memories[d.memory]
	if free := m.CapacityBytes - d.used; m.CapacityBytes > 0 && bytes > free || bytes >= 1<<arenaBits {
		return 0, fmt.Errorf("reserve %d bytes of memory %q, which has %d left: %w", bytes, m.Name, free, driver.ErrMemory)
	}
	arenas := &d.space[d.memory]
	if len(*arenas) == maxArenas {
		panic("emulated: a device has no more arenas")
	}
	d.used += bytes
	*arenas = append(*arenas, host.AlignedBytes(bytes))
	return driver.Address(d.memory+1)<<memoryBits + driver.Address(len(*arenas)-1)<<arenaBits, nil
}

// Pin has nothing to do: the streams are goroutines of this process.
func (d *device) Pin([]byte) error { return nil }

func (d *device) NewStream(copies bool) (driver.StreamID, error) {
	cpu := -1
	if !copies && len(d.cores) > 0 {
		cpu, d.cores = d.cores[0], d.cores[1:]
	}
	s := &stream{device: d, cpu: cpu, ran: -1, ops: make([]operation, queueLength)}
	d.streams = append(d.streams, s)
	d.ended.Go(s.main)
	return driver.StreamID(len(d.streams) - 1), nil
}

func (d *device) NewEvent() (driver.EventID, error) {
	d.events = append(d.events, &event{})
	return driver.EventID(len(d.events) - 1), nil
}

func (d *device) Bind(c *driver.Call) (driver.LaunchID, error) {
	e := &call{run: c.Variant.Run(c.Spec.Type), least: d.pace.leastTime(c), worker: c.Worker, clock: c.Clock, sleeps: c.Sleeps}
	e.call.Params = c.Kernel.Values(c.Spec)
	for _, o := range c.Args {
		e.call.Args = append(e.call.Args, calls.Bind(d.pointer(o.Base, o.Buffer.Bytes()), o.Buffer, o.Box, o.Mode))
	}
	if c.Variant.WorkspaceBytes != nil {
		if bytes := c.Variant.WorkspaceBytes(c.Spec); bytes > 0 {
			e.call.Work = d.space.at(c.Work)[:bytes]
		}
	}
	d.calls = append(d.calls, e)
	return driver.LaunchID(len(d.calls) - 1), nil
}

// pointer is where bytes begin that lie wholly in one of the device's arenas.
func (d *device) pointer(at driver.Address, bytes int64) unsafe.Pointer {
	if platform.MemoryID(at>>memoryBits)-1 != d.memory {
		panic("emulated: a call is bound to another memory")
	}
	return unsafe.Pointer(unsafe.SliceData(d.space.at(at)[:bytes]))
}

func (d *device) Launch(s driver.StreamID, l driver.LaunchID) error {
	return d.issue(s, operation{kind: launchOp, call: d.calls[l]})
}

func (d *device) Copy(s driver.StreamID, c *driver.Copy) error {
	return d.issue(s, operation{kind: copyOp, copy: c, to: d.span(&c.To, c), from: d.span(&c.From, c)})
}

// span is the bytes of a copy in one memory, from its first to its last.
func (d *device) span(p *driver.Plane, c *driver.Copy) []byte {
	if c.Rows*c.RowBytes == 0 {
		return nil
	}
	bytes := (c.Rows-1)*p.Pitch + c.RowBytes
	if p.Host != nil {
		return unsafe.Slice((*byte)(p.Host), bytes)
	}
	return d.space.at(p.Device)[:bytes]
}

func (d *device) Fill(s driver.StreamID, at driver.Address, bytes int64, value byte) error {
	return d.issue(s, operation{kind: fillOp, to: d.space.at(at)[:bytes], value: value})
}

func (d *device) Record(s driver.StreamID, e driver.EventID) error {
	event := d.events[e]
	event.recorded++
	return d.issue(s, operation{kind: recordOp, event: event, number: event.recorded})
}

func (d *device) Wait(s driver.StreamID, e driver.EventID) error {
	event := d.events[e]
	return d.issue(s, operation{kind: waitOp, event: event, number: event.recorded})
}

func (d *device) Done(e driver.EventID) (bool, error) {
	event := d.events[e]
	return event.passed.Load() >= event.recorded, d.failure()
}

func (d *device) Elapsed(from, to driver.EventID) (time.Duration, error) {
	return time.Duration(d.events[to].at.Load() - d.events[from].at.Load()), d.failure()
}

func (d *device) Close() error {
	d.closed.Store(true)
	d.wakeStreams()
	d.ended.Wait()
	d.space[d.memory] = nil
	return nil
}

// now is the device's clock: the time since it was opened.
func (d *device) now() time.Duration { return time.Since(d.epoch) }

func (d *device) Begin(base driver.EventID, record bool) {
	if d.states == nil {
		return
	}
	zero := time.Duration(0)
	if record {
		zero = time.Duration(d.events[base].at.Load())
	}
	d.states.begin(record, zero)
}

func (d *device) Prepare(s driver.StreamID, l driver.LaunchID) error {
	if d.states == nil {
		return nil
	}
	return d.issue(s, operation{kind: prepareOp, call: d.calls[l]})
}

func (d *device) Changes() []schedule.Change {
	if d.states == nil {
		return nil
	}
	return d.states.changes()
}

// Capture lists operations instead of handing them to their stream.
func (d *device) Capture(_ driver.StreamID, issue func() error) (driver.CaptureID, error) {
	d.captures, d.capturing = append(d.captures, nil), true
	err := issue()
	d.capturing = false
	return driver.CaptureID(len(d.captures) - 1), err
}

func (d *device) Replay(s driver.StreamID, c driver.CaptureID) error {
	for _, op := range d.captures[c] {
		if err := d.issue(s, op); err != nil {
			return err
		}
	}
	return nil
}

// issue hands an operation to a stream.
func (d *device) issue(s driver.StreamID, op operation) error {
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
			return fmt.Errorf("launch %d: %w, %w", d.launched, driver.ErrMemory, errAsTold)
		}
	}
	d.streams[s].push(op)
	return nil
}

// failure is why the device has stopped; nil while it works.
func (d *device) failure() error {
	if err := d.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// lose stops the device. The first cause is kept.
func (d *device) lose(cause error) {
	err := fmt.Errorf("%w: %w", driver.ErrLost, cause)
	d.failed.CompareAndSwap(nil, &err)
	d.wakeStreams()
	d.notify()
}

// wakeStreams lets the streams see that the device is closed or lost.
func (d *device) wakeStreams() {
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
func (d *device) report(e *event) {
	for _, s := range d.streams {
		if s.waits.Load() == e {
			s.parker.Wake()
		}
	}
	d.notify()
}

var errAsTold = errors.New("as its fault in the platform says")
