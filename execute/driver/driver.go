package driver

import (
	"errors"
	"time"
	"unsafe"

	"dahl/dag"
	"dahl/kernels"
	"dahl/kernels/calls"
	"dahl/platform"
	"dahl/schedule"
)

// Driver is one memory and the devices at it, as the executor sees them: arenas, streams, events,
// launches and copies. All of its calls come from one [Thread].
//
// Operations on a stream are issued in order, return at once and are done in order. Only events
// order operations on different streams. An operation sees all writes of the operations before it
// on its stream, of those before an event for which its stream waited, and of the host before the
// operation was issued. The host sees all writes before an event once [Driver.Done] has reported
// the event.
//
// NewStream, NewEvent, Bind and Reserve are called while a runner is being made. The other calls
// allocate nothing, neither here nor on the device.
//
// An error is about the call or about an operation issued earlier. If it wraps [ErrLost],
// nothing more can be done with the device, and further calls repeat it. Messages name the device
// and the request; the caller adds the task.
//
// If the device can capture calls, the driver is a [Capturer] too. If the device changes clocks or
// sleeps, it is a [Stater].
type Driver interface {
	Properties() Properties

	// Reserve allocates zeroed device memory, aligned to at least [Align]; Close gives it
	// back. Where it does not fit, the error wraps [ErrMemory] and says how much was asked
	// and is free.
	Reserve(bytes int64) (Address, error)
	// Pin makes host memory ready for asynchronous copies by any device. The memory begins on a
	// page, fills its pages, and lives until Close. It is no error if another driver has pinned
	// it.
	Pin(host []byte) error
	// NewStream makes a stream of copies only, or one of launches. A driver may give it a core.
	NewStream(copies bool) (StreamID, error)
	NewEvent() (EventID, error)
	// Bind prepares a kernel call and pays for it: it loads modules and lays out parameters. It
	// may make the call once, since operands and workspace hold nothing of worth yet and no
	// stream uses them.
	Bind(c *Call) (LaunchID, error)

	// Launch issues a kernel call.
	Launch(s StreamID, l LaunchID) error
	// Copy issues a movement of bytes. A copy of no bytes does nothing.
	Copy(s StreamID, c *Copy) error
	// Fill issues an operation that sets bytes of an arena.
	Fill(s StreamID, at Address, bytes int64, value byte) error
	// Record issues a mark: the event is done when everything before it on the stream is. An
	// event is recorded again and again; Wait, Done and Elapsed mean the last record issued
	// before them.
	Record(s StreamID, e EventID) error
	// Wait holds everything issued to the stream from now on until the event is done. An event
	// that was never recorded is done.
	Wait(s StreamID, e EventID) error

	// Done reports whether an event is done. It does not block.
	Done(e EventID) (bool, error)
	// Elapsed is the time between two finished events on the device's clock, to half a
	// microsecond or better. It is negative if to came first.
	Elapsed(from, to EventID) (time.Duration, error)

	// Close ends the device's work, waits for it and gives everything back.
	Close() error
}

// Capturer is a driver that can capture the calls on a stream and repeat them by one call.
type Capturer interface {
	// Capture takes down the launches, copies and fills that issue makes on the stream, instead
	// of doing them. Nobody makes another call meanwhile.
	Capture(s StreamID, issue func() error) (CaptureID, error)
	// Replay issues everything captured, in its order.
	Replay(s StreamID, c CaptureID) error
}

// Stater is a driver whose device changes clocks and sleeps.
type Stater interface {
	// Begin starts a run, with all units awake at the clock in force. base is the event from which
	// a recorded run counts.
	Begin(base EventID, record bool)
	// Prepare issues what a launch has to wait for, so that an event before the launch is after it.
	Prepare(s StreamID, l LaunchID) error
	// Changes lists the changes in the last recorded run, on the device's clock since the base.
	Changes() []schedule.Change
}

// A driver counts what it has made from 0, in the order of the calls.
type (
	StreamID  int32
	EventID   int32
	LaunchID  int32
	CaptureID int32
)

// Address is an address in the memory of a device, not in this process.
type Address uint64

// Align is the alignment of arenas and of workspace on which a kernel on a device may rely.
const Align = 256

// Properties are the facts that a device gives about itself.
type Properties struct {
	Name          string
	CapacityBytes int64 // in all; zero means not limited
	FreeBytes     int64 // before anything was reserved
	Capability    int   // in the numbers of its code, as calls.Variant.Capability; zero means none
	Reports       bool  // it wakes the waiting goroutine when an event is done; others have to be asked
}

// Call is a kernel call for Bind. The driver keeps the parts that it needs.
type Call struct {
	Kernel  *kernels.Kernel
	Spec    *calls.Spec
	Variant *calls.Variant
	Args    []Operand
	Work    Address // workspace, at least Variant.WorkspaceBytes(Spec), aligned to Align

	// These are for emulated devices. The time of the call is Cost if a graph gave that, else the time
	// by a model of the platform.
	Device platform.DeviceID
	Cost   schedule.Cost
	Worker platform.WorkerID // whose task it is; -1 means that no plan or policy has the call
	Clock  platform.ClockID
	Sleeps int32 // sleep state after the call, as an index plus 1
}

// Addressed is the call as its launches see it, with addresses of the device.
func (c *Call) Addressed() *calls.DeviceCall {
	call := &calls.DeviceCall{Type: c.Spec.Type, Params: c.Kernel.Values(c.Spec), Work: uint64(c.Work)}
	for _, o := range c.Args {
		call.Args = append(call.Args, calls.BindDevice(uint64(o.Base), o.Buffer, o.Box, o.Mode))
	}
	return call
}

// Operand is a box of a buffer whose storage begins at Base.
type Operand struct {
	Base   Address
	Buffer *dag.Buffer
	Box    dag.Box // nil means the whole buffer
	Mode   dag.Mode
}

// Copy is a movement of rows of bytes between two memories. At least one of them is the
// driver's.
type Copy struct {
	To, From       Plane
	Rows, RowBytes int64
	Bytes          int64 // of the whole transfer
	First          bool  // first copy of its transfer; it pays the latency of the route
}

// CopyOf is a copy of bytes without a gap.
func CopyOf(to, from Plane, bytes int64) *Copy {
	to.Pitch, from.Pitch = bytes, bytes
	return &Copy{To: to, From: from, Rows: 1, RowBytes: bytes, Bytes: bytes, First: true}
}

// Plane is where the rows lie in one memory.
type Plane struct {
	Memory platform.MemoryID
	Host   unsafe.Pointer // the first byte, in pinned memory of the host; nil in the memory of a device
	Device Address        // the first byte, in the memory of a device
	Pitch  int64          // bytes from a row to the next
}

// ErrLost and ErrMemory are wrapped by the errors of a [Driver], which says when.
var (
	ErrLost   = errors.New("the device is lost")
	ErrMemory = errors.New("the device is out of memory")
)
