package execute

import (
	"errors"
	"time"
	"unsafe"

	"dahl/dag"
	"dahl/kernels/calls"
	"dahl/platform"
)

// driver is one memory and the devices at it, as the issue loop (device.go) sees them: arenas,
// streams, events, launches and copies. The emulated device (emulated.go) and CUDA
// (cuda_driver.go, tag cuda) implement it.
//
// One goroutine, locked to its thread, opens a driver, makes every call and closes it.
//
// Operations on a stream are issued in order, return at once and are done in order. Only events
// order operations on different streams. An operation sees all writes of the operations before it
// on its stream, of those before an event for which its stream waited, and of the host before the
// operation was issued. The host sees all writes before an event once [driver.done] has reported
// the event.
//
// newStream, newEvent, bind and reserve are called while a runner is being made. The other calls
// allocate nothing, neither here nor on the device.
//
// An error is about the call or about an operation issued earlier. If it wraps errDeviceLost,
// nothing more can be done with the device, and further calls repeat it. Messages name the device
// and the request; the caller adds the task.
type driver interface {
	properties() deviceProperties

	// reserve allocates zeroed device memory, aligned to at least deviceAlign; close gives it
	// back. Where it does not fit, the error wraps errDeviceMemory and says how much was asked
	// and is free.
	reserve(bytes int64) (deviceAddr, error)
	// pin makes host memory ready for asynchronous copies by any device. The memory begins on a
	// page, fills its pages, and lives until close. It is no error if another driver has pinned
	// it.
	pin(host []byte) error
	// newStream makes a stream of copies only, or one of launches. A driver may give it a core.
	newStream(copies bool) (streamID, error)
	newEvent() (eventID, error)
	// bind prepares a kernel call and pays for it: it loads modules and lays out parameters. It
	// may make the call once, since operands and workspace hold nothing of worth yet and no
	// stream uses them.
	bind(c *deviceCall) (launchID, error)

	// launch issues a kernel call.
	launch(s streamID, l launchID) error
	// copy issues a movement of bytes. A copy of no bytes does nothing.
	copy(s streamID, c *deviceCopy) error
	// fill issues an operation that sets bytes of an arena.
	fill(s streamID, at deviceAddr, bytes int64, value byte) error
	// record issues a mark: the event is done when everything before it on the stream is. An
	// event is recorded again and again; wait, done and elapsed mean the last record issued
	// before them.
	record(s streamID, e eventID) error
	// wait holds everything issued to the stream from now on until the event is done. An event
	// that was never recorded is done.
	wait(s streamID, e eventID) error

	// done reports whether an event is done. It does not block.
	done(e eventID) (bool, error)
	// elapsed is the time between two finished events on the device's clock, to half a
	// microsecond or better. It is negative if to came first.
	elapsed(from, to eventID) (time.Duration, error)

	// close ends the device's work, waits for it and gives everything back.
	close() error
}

// A driver counts what it has made from 0, in the order of the calls.
type (
	streamID int32
	eventID  int32
	launchID int32
)

// deviceAddr is an address in the memory of a device, not in this process.
type deviceAddr uint64

// deviceProperties is what a device says about itself.
type deviceProperties struct {
	Name          string
	CapacityBytes int64 // in all; 0: not limited
	FreeBytes     int64 // before anything was reserved
	Capability    int   // in the numbers of its code, as calls.Variant.Capability; 0: none
	Reports       bool  // it wakes the waiting goroutine when an event is done; others have to be asked
}

// deviceCall is a kernel call for bind. The driver keeps the parts that it needs.
type deviceCall struct {
	spec    *calls.Spec
	variant *calls.Variant
	params  []float64 // in the order of Kernel.Params
	args    []deviceOperand
	work    deviceAddr // workspace, at least variant.WorkspaceBytes(spec), aligned to deviceAlign

	// Of an emulated device: the model's time of the call, which takes no less, who runs it (-1:
	// nobody of a plan or policy), at which clock, and the sleep state after it, as an index plus 1.
	least  time.Duration
	worker platform.WorkerID
	clock  platform.ClockID
	sleeps int32
}

// deviceOperand is a box of a buffer whose storage begins at base.
type deviceOperand struct {
	base   deviceAddr
	buffer *dag.Buffer
	box    dag.Box // nil: the whole buffer
	mode   dag.Mode
}

// deviceCopy is a movement of rows of bytes between two memories. At least one of them is the
// driver's.
type deviceCopy struct {
	to, from       plane
	rows, rowBytes int64
	bytes          int64 // of the whole transfer
	first          bool  // first copy of its transfer; it pays the latency of the route
}

// copyOfBytes is a copy of bytes without a gap.
func copyOfBytes(to, from plane, bytes int64) *deviceCopy {
	to.pitch, from.pitch = bytes, bytes
	return &deviceCopy{to: to, from: from, rows: 1, rowBytes: bytes, bytes: bytes, first: true}
}

// plane is where the rows lie in one memory.
type plane struct {
	memory platform.MemoryID
	host   unsafe.Pointer // the first byte, in pinned memory of the host; nil:
	device deviceAddr     // the first byte, in the memory of a device
	pitch  int64          // bytes from a row to the next
}

var (
	errDeviceLost   = errors.New("the device is lost")
	errDeviceMemory = errors.New("the device is out of memory")
)
