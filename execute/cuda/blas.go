//go:build cuda

package cuda

/*
#include <cuda.h>
#include <stdint.h>
#include <stdlib.h>

// What is used of cuBLAS, as its documentation has it since CUDA 11; handles are pointers,
// results cublasStatus_t. The library is loaded at run time: its functions are addresses.
typedef int (*blas_create)(void **handle);
typedef int (*blas_destroy)(void *handle);
typedef int (*blas_set_stream)(void *handle, CUstream stream);
typedef int (*blas_set_workspace)(void *handle, void *workspace, size_t bytes);
typedef int (*blas_set_math)(void *handle, int mode);
typedef int (*blas_gemm)(void *handle, int ta, int tb, int m, int n, int k, const void *alpha, const void *a, int lda,
                         const void *b, int ldb, const void *beta, void *c, int ldc);

static int create(void *f, uintptr_t *handle) { return ((blas_create)f)((void **)handle); }
static int destroy(void *f, uintptr_t handle) { return ((blas_destroy)f)((void *)handle); }
static int set_stream(void *f, uintptr_t handle, CUstream s) { return ((blas_set_stream)f)((void *)handle, s); }

// A product laid out once, column by column as the library has matrices.
struct product {
	void *set_workspace, *set_math, *gemm;
	int double_precision, math;
	int ta, tb, m, n, k, lda, ldb, ldc, add;
	CUdeviceptr a, b, c, work;
	size_t work_bytes;
};

// multiply sets what of the handle belongs to the product, which the host alone sees, and
// issues it. The result is 0, or 4 times the status plus the number of the call that failed.
static int multiply(const struct product *p, uintptr_t h) {
	static const float one = 1, zero = 0;
	static const double one64 = 1, zero64 = 0;
	void *handle = (void *)h;
	int r;
	if ((r = ((blas_set_workspace)p->set_workspace)(handle, (void *)(uintptr_t)p->work, p->work_bytes))) return 4 * r;
	if ((r = ((blas_set_math)p->set_math)(handle, p->math))) return 4 * r + 1;
	const void *alpha = p->double_precision ? (const void *)&one64 : &one;
	const void *beta = p->double_precision ? (const void *)(p->add ? &one64 : &zero64) : p->add ? &one : &zero;
	r = ((blas_gemm)p->gemm)(handle, p->ta, p->tb, p->m, p->n, p->k, alpha, (const void *)(uintptr_t)p->a, p->lda,
	                         (const void *)(uintptr_t)p->b, p->ldb, beta, (void *)(uintptr_t)p->c, p->ldc);
	return r ? 4 * r + 2 : 0;
}
*/
import "C"

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"

	kernelcode "dahl/kernels/cuda"
)

// ErrNoLibrary is wrapped by the errors of a machine that lacks a library.
var ErrNoLibrary = errors.New("the library was not found")

// blasMajors are the CUDA versions whose cuBLAS is looked for, best first.
var blasMajors = []int{13, 12, 11}

// Blas is cuBLAS (NVIDIA, cuBLAS library user guide), loaded at run time. Its products have the same
// bits in every run of one version on one kind of device: one handle serves one stream, with
// the workspace that the call names, and sums by atomic operations are off, as they are
// unless asked for. A product under capture becomes part of the graph.
//
// The library is loaded by purego; its functions are called through cgo, since purego's
// calls allocate.
type Blas struct {
	Name      string // of the file
	functions map[string]unsafe.Pointer
}

// LoadBlas loads the newest cuBLAS that the driver serves, at the first call; the others repeat
// the result. What is not there is an error that wraps [ErrNoLibrary].
var LoadBlas = sync.OnceValues(func() (*Blas, error) {
	if err := Start(); err != nil {
		return nil, err
	}
	return loadBlas(blasNames(DriverVersion()))
})

// blasNames are the files to look for with a driver that serves a CUDA version.
func blasNames(version int) []string {
	var names []string
	for _, major := range blasMajors {
		if major <= version/1000 {
			names = append(names, fmt.Sprintf("libcublas.so.%d", major))
		}
	}
	return names
}

// blasFunctions are the names of what is used in the library.
var blasFunctions = []string{
	"cublasCreate_v2", "cublasDestroy_v2", "cublasSetStream_v2", "cublasSetWorkspace_v2", "cublasSetMathMode",
	"cublasSgemm_v2", "cublasDgemm_v2",
}

func loadBlas(names []string) (*Blas, error) {
	for _, name := range names {
		library, err := purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL)
		if err != nil {
			continue
		}
		b := &Blas{Name: name, functions: map[string]unsafe.Pointer{}}
		for _, f := range blasFunctions {
			address, err := purego.Dlsym(library, f)
			if err != nil {
				return nil, fmt.Errorf("cuBLAS: %s is too old: it lacks %s: %w", name, f, ErrNoLibrary)
			}
			b.functions[f] = *(*unsafe.Pointer)(unsafe.Pointer(&address))
		}
		return b, nil
	}
	return nil, fmt.Errorf("cuBLAS: none of %s can be loaded (LD_LIBRARY_PATH says where to look): %w", strings.Join(names, ", "), ErrNoLibrary)
}

// BlasHandle is cuBLAS on one stream.
type BlasHandle struct {
	blas   *Blas
	handle C.uintptr_t
}

// NewHandle makes a handle for a stream of the current device. It allocates memory of the
// device.
func (b *Blas) NewHandle(s Stream) (BlasHandle, error) {
	h := BlasHandle{blas: b}
	if err := blasError("cublasCreate", C.create(b.functions["cublasCreate_v2"], &h.handle)); err != nil {
		return h, err
	}
	err := blasError("cublasSetStream", C.set_stream(b.functions["cublasSetStream_v2"], h.handle, handle(s.s)))
	if err != nil {
		return h, errors.Join(err, h.Destroy())
	}
	return h, nil
}

// Destroy gives the handle back. The stream must still exist.
func (h BlasHandle) Destroy() error {
	return blasError("cublasDestroy", C.destroy(h.blas.functions["cublasDestroy_v2"], h.handle))
}

// Values of cuBLAS's enumerations.
const (
	blasNormal, blasTransposed = 0, 1 // cublasOperation_t
	blasPedantic, blasTF32     = 2, 3 // cublasMath_t
)

// Product is a product made ready, in memory of C.
type Product struct{ p *C.struct_product }

// Prepare makes a product ready; Free gives its memory back. The library's matrices lie
// column by column: what it sees of a row-major matrix is the transposed one, and c = a·b
// is cᵀ = bᵀ·aᵀ to it. So factors change places, and one that is transposed in rows is so
// for the library too.
func (b *Blas) Prepare(from *kernelcode.Product) Product {
	p := (*C.struct_product)(C.calloc(1, C.sizeof_struct_product))
	p.set_workspace, p.set_math = b.functions["cublasSetWorkspace_v2"], b.functions["cublasSetMathMode"]
	p.gemm, p.math = b.functions["cublasSgemm_v2"], blasPedantic
	if from.Float64 {
		p.gemm, p.double_precision = b.functions["cublasDgemm_v2"], 1
	}
	if from.TF32 {
		p.math = blasTF32
	}
	p.m, p.n, p.k = C.int(from.Columns), C.int(from.Rows), C.int(from.Depth)
	p.a, p.lda, p.ta = C.CUdeviceptr(from.B.Addr), C.int(from.B.Stride), operation(from.B)
	p.b, p.ldb, p.tb = C.CUdeviceptr(from.A.Addr), C.int(from.A.Stride), operation(from.A)
	p.c, p.ldc = C.CUdeviceptr(from.C.Addr), C.int(from.C.Stride)
	if from.Add {
		p.add = 1
	}
	p.work, p.work_bytes = C.CUdeviceptr(from.Work), C.size_t(from.WorkBytes)
	return Product{p}
}

func operation(m kernelcode.Matrix) C.int {
	if m.Transposed {
		return blasTransposed
	}
	return blasNormal
}

// Free gives the memory back.
func (p Product) Free() { C.free(unsafe.Pointer(p.p)) }

// Multiply issues a product to the handle's stream.
func (h BlasHandle) Multiply(p Product) error {
	r := C.multiply(p.p, h.handle)
	return blasError([]string{"cublasSetWorkspace", "cublasSetMathMode", "cublas gemm"}[r%4], r/4)
}

// blasStatuses are the names of cublasStatus_t.
var blasStatuses = map[C.int]string{
	1: "NOT_INITIALIZED", 3: "ALLOC_FAILED", 7: "INVALID_VALUE", 8: "ARCH_MISMATCH", 11: "MAPPING_ERROR",
	13: "EXECUTION_FAILED", 14: "INTERNAL_ERROR", 15: "NOT_SUPPORTED", 16: "LICENSE_ERROR",
}

// blasError makes an error of a status. A failed execution leaves the driver's error to its
// next call.
func blasError(call string, status C.int) error {
	if status == 0 {
		return nil
	}
	name, ok := blasStatuses[status]
	if !ok {
		return fmt.Errorf("%s: status %d", call, status)
	}
	return fmt.Errorf("%s: CUBLAS_STATUS_%s", call, name)
}
