// Package cuda is the driver of NVIDIA GPUs ([Backend]) and the calls of the CUDA driver API under
// it. It uses gorgonia.org/cu, and one cgo file (call.go) for calls that cu lacks or makes with
// more work. Everything needs the build tag cuda; without it the backend fails. `make cuda` sets the flags it needs:
//
//   - a header: the toolkit's cuda.h where CUDA_HOME names one (11.8 to 13), else include/cuda.h,
//     which declares the calls used. include13 comes first and restores the names under
//     gorgonia.org/cu v0.9.6 that CUDA 13 changed
//   - a library to link: stub/make.sh makes libcuda.a with functions that jump through a table.
//     [Start] fills the table from libcuda.so.1. The binary needs libc only and starts without a
//     driver
//
// # Use
//
// One goroutine, locked to its thread, opens a [Device] and makes all calls of it, since the
// current context belongs to the thread. Copies, launches, marks and waits return at once and
// allocate nothing. Their host memory has to be pinned. It may lie in Go's heap, where nothing
// moves. The caller keeps it alive, since this package knows only its address.
//
// Every error of the driver is an [Error]: the call and CUDA's name of the fault. An error with
// Lost set ends the device, and CUDA repeats it at every later call.
//
// # Libraries
//
// Three libraries are loaded at run time where they are installed ([Load]): cuBLAS (blas.go),
// cuBLASLt (blaslt.go) and cuDNN (dnn.go and dnn.h). purego loads them.
// It has to be version 0.11 or newer: the assembly of 0.9 and 0.10 writes above its frame on
// x86-64, where the thread's own return address may lie.
//
// # Without a GPU
//
// testdriver is a libcuda.so.1 for tests, on the CPU; `make cuda-test` runs the tagged tests on
// it. It has streams, events, graphs and memory with addresses of its own. It runs the kernels'
// sources compiled for the host, with the threads of a block as fibers. It finds these faults,
// whatever order a run happened to take:
//
//   - accesses beyond an allocation
//   - operations on the same bytes without an order by a stream, an event or a wait of the host
//   - threads of a block on the same bytes without a barrier between them
//   - different blocks on the same bytes
//   - barriers reached by some threads only
//   - asynchronous copies of unpinned memory
//
// It cannot see host code that touches pinned memory while a copy runs. testblas is a
// libcublas.so.12 and a libcublasLt.so.12 over it, testdnn a libcudnn.so.9. In a capture they
// refuse the first use of anything. The environment of testdriver:
//
//	DAHL_TESTDRIVER_DEVICES=2       number of devices
//	DAHL_TESTDRIVER_MEMORY=bytes    of each, 256 MiB by default
//	DAHL_TESTDRIVER_CAPABILITY=80   10·major + minor
//	DAHL_TESTDRIVER_SEED=1          of the order among streams
//	DAHL_TESTDRIVER_LOSE=0:7        device 0 is lost at its 7th launch
//	DAHL_TESTDRIVER_WAIT=1          a call on a stream returns when its work is done
//	DAHL_TESTDRIVER_LOG=file        lists calls that allocate or wait for a device
package cuda
