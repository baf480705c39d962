package execute

import (
	"errors"
	"time"
	"unsafe"

	"dahl/dag"
	"dahl/kernels"
	"dahl/platform"
)

// driver is one memory with the devices at it, as the issue loop (device.go) sees
// them: arenas, streams, events, launches and copies. It is implemented by the
// emulated device (emulated.go) and by CUDA (cuda_driver.go, tag cuda).
//
// One goroutine, locked to its thread, opens a driver, makes every call and closes it.
//
// Operations on a stream are issued in order, return at once and are done in order.
// Streams are not ordered among each other but by events. An operation sees everything
// that operations before it on its stream wrote, that operations before an event
// for which its stream waited wrote, and that the host wrote before the
// operation was issued. The host sees what was written before an event once
// [driver.done] has reported it.
//
// After newStream, newEvent, bind and reserve have been called while a runner is being
// made, the other calls allocate nothing, neither here nor on the device.
//
// An error is about the call or about an operation issued earlier. One that wraps
// errDeviceLost means that nothing more can be done with the device, which further
// calls then repeat. Messages name the device and what it was asked; who calls adds
// the task.
type driver interface {
	properties() deviceProperties

	// reserve allocates device memory of zeros, aligned to deviceAlign at
	// least. What does not fit is an error that wraps errDeviceMemory and says what
	// was asked and what is free. Memory is given back by close.
	reserve(bytes int64) (deviceAddr, error)
	// pin makes host memory ready for asynchronous copies by any device. It begins
	// on a page, fills its pages, and lives until close. Memory that another driver has
	// pinned is no error.
	pin(host []byte) error
	newStream(use streamUse) (streamID, error)
	newEvent() (eventID, error)
	// bind prepares a kernel call. Its cost is paid here: modules are loaded,
	// parameters laid out. Its operands and workspace hold nothing of worth, and no stream
	// works on them: the call may be made once.
	bind(c *deviceCall) (launchID, error)

	// launch issues a kernel call.
	launch(s streamID, l launchID) error
	// copy issues a movement of bytes; a copy of no bytes does nothing.
	copy(s streamID, c *deviceCopy) error
	// fill issues the setting of bytes of an arena.
	fill(s streamID, at deviceAddr, bytes int64, value byte) error
	// record issues a mark: the event is done when everything before it on the stream
	// is. Events are recorded again and again; wait, done and elapsed are about the
	// last record issued before them.
	record(s streamID, e eventID) error
	// wait holds what is issued to the stream from now on until the event is done.
	// An event that was never recorded is done.
	wait(s streamID, e eventID) error

	// done reports whether an event is done. It does not block.
	done(e eventID) (bool, error)
	// elapsed is the time between two events that are done, on the device's clock, to
	// half a microsecond or better; negative if to came first.
	elapsed(from, to eventID) (time.Duration, error)

	// close ends the device's work, waits for it and gives everything back.
	close() error
}

// Indices into what a driver has made, each from 0 in the order of the calls.
type (
	streamID int32
	eventID  int32
	launchID int32
)

// deviceAddr is an address in the memory of a device. It is not one of this process.
type deviceAddr uint64

// deviceProperties is what a device says of itself.
type deviceProperties struct {
	Name          string
	CapacityBytes int64 // in all; 0: not limited
	FreeBytes     int64 // before anything was reserved
	Capability    int   // of CUDA: 10·major + minor; 0: none
	Reports       bool  // it wakes who waits when an event is done; else it has to be asked
}

// streamUse says what a stream is for, so that a driver can give it the right
// priority, engine or core.
type streamUse struct {
	copies bool              // only copies, else launches
	worker platform.WorkerID // whose tasks are launched
}

// deviceCall is a kernel call as bind takes it. The driver keeps what it needs of it.
type deviceCall struct {
	spec    *kernels.Spec
	variant *kernels.Variant
	params  []float64 // in the order of Kernel.Params
	args    []deviceOperand
	work    deviceAddr // workspace, at least variant.WorkspaceBytes(spec), aligned to deviceAlign

	least time.Duration // the model's time of the call: an emulated device takes no less
}

// deviceOperand is a box of a buffer whose storage begins at base.
type deviceOperand struct {
	base   deviceAddr
	buffer *dag.Buffer
	box    dag.Box // nil: the whole buffer
	mode   dag.Mode
}

// deviceCopy is a movement of rows of bytes between two memories, of which one at
// least is the driver's.
type deviceCopy struct {
	to, from       plane
	rows, rowBytes int64
	bytes          int64 // of the transfer that the copy is a part of
	first          bool  // of the copies of that transfer: it pays the latency of the route
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
