//go:build cuda

package cuda

/*
#include <cuda.h>
#include <stdlib.h>
#include <string.h>

// Of the stand-in library of stub/lazy.c; absent if the real one was linked.
extern int dahl_cuda_start(void) __attribute__((weak));

static int start(void) { return dahl_cuda_start ? dahl_cuda_start() : (int)cuInit(0); }

// A launch with its parameter, laid out once: issuing it copies nothing.
struct launch {
	CUfunction function;
	unsigned grid[3], block[3], shared;
	size_t bytes;
	void *params;
};

static CUresult launch_all(const struct launch *l, int n, CUstream stream) {
	for (int i = 0; i < n; i++, l++) {
		size_t bytes = l->bytes;
		void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, l->params, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
		CUresult r = cuLaunchKernel(l->function, l->grid[0], l->grid[1], l->grid[2], l->block[0], l->block[1], l->block[2],
		                            l->shared, stream, NULL, extra);
		if (r != CUDA_SUCCESS) return r;
	}
	return CUDA_SUCCESS;
}

// Rows between host (to_host, from_host, or 0) and device memory.
static CUresult copy_rows(uintptr_t to_host, CUdeviceptr to, size_t to_pitch, uintptr_t from_host, CUdeviceptr from,
                          size_t from_pitch, size_t width, size_t rows, CUstream stream) {
	CUDA_MEMCPY2D c;
	memset(&c, 0, sizeof c);
	c.dstMemoryType = to_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
	c.dstHost = (void *)to_host, c.dstDevice = to, c.dstPitch = to_pitch;
	c.srcMemoryType = from_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
	c.srcHost = (const void *)from_host, c.srcDevice = from, c.srcPitch = from_pitch;
	c.WidthInBytes = width, c.Height = rows;
	return cuMemcpy2DAsync(&c, stream);
}

static CUresult copy_bytes(uintptr_t to_host, CUdeviceptr to, uintptr_t from_host, CUdeviceptr from, size_t bytes,
                           CUstream stream) {
	if (to_host) return cuMemcpyDtoHAsync((void *)to_host, from, bytes, stream);
	if (from_host) return cuMemcpyHtoDAsync(to, (const void *)from_host, bytes, stream);
	return cuMemcpyAsync(to, from, bytes, stream);
}
*/
import "C"

import (
	"fmt"
	"unsafe"

	"gorgonia.org/cu"

	"dahl/execute/driver"
	kernelcode "dahl/kernels/cuda"
	"dahl/kernels/offload"
)

// check makes an Error of a result.
func check(call string, r C.CUresult) error {
	if r == C.CUDA_SUCCESS {
		return nil
	}
	return newError(call, int(r))
}

func newError(call string, code int) *Error {
	e := &Error{Call: call, Code: code, Name: fmt.Sprintf("error %d", code)}
	var name *C.char
	if C.cuGetErrorName(C.CUresult(code), &name) == C.CUDA_SUCCESS && name != nil {
		e.Name = C.GoString(name)
	}
	return e
}

// The handles of cu are structs of the one C handle; it gives out only the stream's.
func handle(s cu.Stream) C.CUstream { return C.CUstream(unsafe.Pointer(s.C())) }

func eventHandle(e cu.Event) C.CUevent { return *(*C.CUevent)(unsafe.Pointer(&e)) }

// load loads the driver library and initialises it; gorgonia.org/cu's own call
// of cuInit, when the program starts, does nothing in our stand-in library.
func load() error {
	switch r := C.start(); r {
	case -1:
		return fmt.Errorf("%w: there is no driver library, libcuda.so.1", ErrNoDevice)
	case C.CUDA_ERROR_NO_DEVICE:
		return ErrNoDevice
	default:
		return check("cuInit", C.CUresult(r))
	}
}

// Launches are prepared kernel launches, in memory of C.
type Launches struct {
	first *C.struct_launch
	n     C.int
}

// Prepare prepares launches; Free gives their memory back.
func (d *Device) Prepare(launches []offload.Launch) (Launches, error) {
	if len(launches) == 0 {
		return Launches{}, nil
	}
	ready := Launches{(*C.struct_launch)(C.calloc(C.size_t(len(launches)), C.sizeof_struct_launch)), C.int(len(launches))}
	for i := range launches {
		from, l := &launches[i], &unsafe.Slice(ready.first, len(launches))[i]
		f, err := d.function(from)
		if err != nil {
			ready.Free()
			return Launches{}, err
		}
		l.function = f
		for k := range 3 {
			l.grid[k], l.block[k] = C.uint(from.Grid[k]), C.uint(from.Block[k])
		}
		l.shared = C.uint(from.SharedBytes)
		l.bytes = C.size_t(len(from.Params))
		l.params = C.CBytes(from.Params)
	}
	return ready, nil
}

// Free gives the memory back. No other thread may be issuing the launches.
func (l Launches) Free() {
	for _, one := range unsafe.Slice(l.first, int(l.n)) {
		C.free(one.params)
	}
	C.free(unsafe.Pointer(l.first))
}

// Launch issues the launches in order.
func (s Stream) Launch(l Launches) error {
	if l.n == 0 {
		return nil
	}
	return check("cuLaunchKernel", C.launch_all(l.first, l.n, handle(s.s)))
}

// Copy issues a copy of rows of width bytes. Both planes may be on devices, if those are peers or
// the same.
func (s Stream) Copy(to, from driver.Plane, width, rows int64) error {
	toHost, fromHost := C.uintptr_t(uintptr(to.Host)), C.uintptr_t(uintptr(from.Host))
	toDevice, fromDevice := C.CUdeviceptr(to.Device), C.CUdeviceptr(from.Device)
	if width == 0 || rows == 0 {
		return nil
	}
	if rows == 1 || to.Pitch == width && from.Pitch == width {
		return check("cuMemcpyAsync", C.copy_bytes(toHost, toDevice, fromHost, fromDevice, C.size_t(width*rows), handle(s.s)))
	}
	return check("cuMemcpy2DAsync", C.copy_rows(toHost, toDevice, C.size_t(to.Pitch),
		fromHost, fromDevice, C.size_t(from.Pitch), C.size_t(width), C.size_t(rows), handle(s.s)))
}

// Fill issues an operation that sets bytes.
func (s Stream) Fill(to driver.Address, value byte, bytes int64) error {
	return check("cuMemsetD8Async", C.cuMemsetD8Async(C.CUdeviceptr(to), C.uchar(value), C.size_t(bytes), handle(s.s)))
}

// Record issues a mark: the event is done when all earlier work on the stream is.
func (s Stream) Record(e Event) error {
	return check("cuEventRecord", C.cuEventRecord(eventHandle(e.e), handle(s.s)))
}

// Wait holds the stream until the event's last mark is reached.
func (s Stream) Wait(e Event) error {
	return check("cuStreamWaitEvent", C.cuStreamWaitEvent(handle(s.s), eventHandle(e.e), 0))
}

// Done reports whether the event's last mark has been reached.
func (e Event) Done() (bool, error) {
	r := C.cuEventQuery(eventHandle(e.e))
	if r == codeNotReady {
		return false, nil
	}
	return r == C.CUDA_SUCCESS, check("cuEventQuery", r)
}

// Milliseconds is the time between two reached marks. CUDA gives it as a float32, to half a
// microsecond.
func (e Event) Milliseconds(to Event) (float32, error) {
	var ms C.float
	err := check("cuEventElapsedTime", C.cuEventElapsedTime(&ms, eventHandle(e.e), eventHandle(to.e)))
	return float32(ms), err
}

// Pin makes host memory ready for asynchronous copies by any device. It is no error if the memory
// is pinned already; own is false then.
func Pin(host []byte) (own bool, err error) {
	r := C.cuMemHostRegister(unsafe.Pointer(unsafe.SliceData(host)), C.size_t(len(host)), C.CU_MEMHOSTREGISTER_PORTABLE)
	if r == codeAlreadyRegistered {
		return false, nil
	}
	return r == C.CUDA_SUCCESS, check("cuMemHostRegister", r)
}

// Unpin undoes Pin.
func Unpin(host []byte) error {
	return check("cuMemHostUnregister", C.cuMemHostUnregister(unsafe.Pointer(unsafe.SliceData(host))))
}

// sharedOfAll is the dynamic shared memory that every launch gets without asking.
const sharedOfAll = 48 << 10

// function finds the kernel of a launch and lets it have its shared memory. Its module is compiled
// for the device at the first one.
func (d *Device) function(l *offload.Launch) (f C.CUfunction, err error) {
	m, ok := d.modules[l.Module]
	if !ok {
		ptx, err := kernelcode.PTX(l.Module, d.Capability)
		if err != nil {
			return f, err
		}
		if m, err = cu.LoadData(ptx); err != nil {
			return f, fmt.Errorf("module %s: %w", l.Module, wrap("cuModuleLoadData", err))
		}
		d.modules[l.Module] = m
	}
	found, err := m.Function(l.Symbol)
	if err != nil {
		return f, wrap("cuModuleGetFunction "+l.Symbol, err)
	}
	f = *(*C.CUfunction)(unsafe.Pointer(&found))
	if l.SharedBytes > sharedOfAll {
		err = check("cuFuncSetAttribute", C.cuFuncSetAttribute(f, C.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, C.int(l.SharedBytes)))
	}
	return f, err
}

// Graph is a captured sequence of calls on streams, to be issued as a whole.
type Graph struct{ exec C.CUgraphExec }

// Capture takes down the calls that issue makes on the stream, instead of doing them. It includes other
// streams if events tie them to this one and back.
func (s Stream) Capture(issue func() error) (Graph, error) {
	if err := check("cuStreamBeginCapture", C.cuStreamBeginCapture(handle(s.s), C.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)); err != nil {
		return Graph{}, err
	}
	issued := issue()
	var g C.CUgraph
	ended := check("cuStreamEndCapture", C.cuStreamEndCapture(handle(s.s), &g))
	if g != nil {
		defer C.cuGraphDestroy(g)
	}
	for _, err := range []error{issued, ended} {
		if err != nil {
			return Graph{}, err
		}
	}
	var graph Graph
	return graph, check("cuGraphInstantiate", C.cuGraphInstantiateWithFlags(&graph.exec, g, 0))
}

// LaunchGraph issues everything captured.
func (s Stream) LaunchGraph(g Graph) error {
	return check("cuGraphLaunch", C.cuGraphLaunch(g.exec, handle(s.s)))
}

// Free gives the graph's resources back.
func (g Graph) Free() error { return check("cuGraphExecDestroy", C.cuGraphExecDestroy(g.exec)) }
