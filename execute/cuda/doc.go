// Package cuda drives NVIDIA GPUs through the CUDA driver API: gorgonia.org/cu for what it
// has, and one cgo file (call.go) for what it lacks or does with more work per call. All but
// [Properties] exists under the build tag cuda; `make cuda` sets the flags it needs:
//
//   - a header: the toolkit's cuda.h where CUDA_HOME names one (11.8 to 13), else
//     include/cuda.h, which declares the calls used. include13 comes first and restores
//     what CUDA 13 renamed under gorgonia.org/cu v0.9.6
//   - a library to link: stub/make.sh makes libcuda.a, whose functions jump through a
//     table that [Start] fills from libcuda.so.1. The binary needs libc only and starts
//     without a driver
//
// # Use
//
// One goroutine, locked to its thread, opens a [Device] and makes all calls of it: the
// current context belongs to the thread. Copies, launches, marks and waits return at once,
// and none of them allocates. Host memory they name has to be pinned. It may be of Go's heap,
// where nothing moves; the caller keeps it alive, since only its address is known here.
//
// Every error of the driver is an [Error]: the call and CUDA's name of what went wrong. One
// with Lost set ends the device: CUDA repeats it at every later call.
//
// # Libraries
//
// cuBLAS, cuBLASLt and cuDNN are loaded at run time where they are installed ([LoadBlas], blas.go;
// [LoadBlasLt], blaslt.go; [LoadDnn], dnn.go and dnn.h). purego loads them, of version 0.11 or newer: the assembly of 0.9 and 0.10
// writes above its frame on x86-64, where the thread's own return address may lie.
//
// # Without a GPU
//
// testdriver is a libcuda.so.1 for tests, on the CPU: `make cuda-test` runs the tagged
// tests on it. It has streams, events, graphs and memory with addresses of its own, and
// runs the kernels' sources compiled for the host, a thread block as fibers. It finds,
// independently of how a run happened to go, accesses beyond an allocation, operations
// that touch the same bytes with no order between them by streams, events or the host's waits,
// threads that do with no barrier between, blocks that do at all, barriers that not all
// threads reach, and asynchronous copies of memory that is not pinned. What it cannot see is
// host code that touches pinned memory while a copy runs. testblas is a libcublas.so.12 and a
// libcublasLt.so.12 over it, testdnn a libcudnn.so.9; of these the first use of anything is
// refused in a capture. Its environment:
//
//	DAHL_TESTDRIVER_DEVICES=2       number of devices
//	DAHL_TESTDRIVER_MEMORY=bytes    of each, 256 MiB by default
//	DAHL_TESTDRIVER_CAPABILITY=80   10·major + minor
//	DAHL_TESTDRIVER_SEED=1          of the order among streams
//	DAHL_TESTDRIVER_LOSE=0:7        device 0 is lost at its 7th launch
//	DAHL_TESTDRIVER_WAIT=1          who asks a stream for something returns when it is done
//	DAHL_TESTDRIVER_LOG=file        takes down calls that allocate or wait for a device
package cuda
