//go:build cuda

package cuda

/*
#include <stdlib.h>

#include "blas.h"

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

// multiply sets the handle's workspace and mathematics, on the host alone, and issues the product. The
// result is 0, or 4 times the status plus the number of the call that failed.
static int multiply(const struct product *p, uintptr_t h) {
	void *handle = (void *)h;
	int r;
	if ((r = ((blas_set_workspace)p->set_workspace)(handle, (void *)(uintptr_t)p->work, p->work_bytes))) return 4 * r;
	if ((r = ((blas_set_math)p->set_math)(handle, p->math))) return 4 * r + 1;
	r = ((blas_gemm)p->gemm)(handle, p->ta, p->tb, p->m, p->n, p->k, scalar(p->double_precision, 1), (const void *)(uintptr_t)p->a, p->lda,
	                         (const void *)(uintptr_t)p->b, p->ldb, scalar(p->double_precision, p->add), (void *)(uintptr_t)p->c, p->ldc);
	return r ? 4 * r + 2 : 0;
}
*/
import "C"

import (
	"errors"
	"fmt"
	"unsafe"

	"dahl/kernels/offload"
)

// blasFunctions are the names of the library's functions in use.
var blasFunctions = []string{
	"cublasCreate_v2", "cublasDestroy_v2", "cublasSetStream_v2", "cublasSetWorkspace_v2", "cublasSetMathMode",
	"cublasSgemm_v2", "cublasDgemm_v2",
}

// blasHandle is cuBLAS (NVIDIA, cuBLAS library user guide) on one stream. Its products have the
// same bits in every run of one version on one kind of device. For that, one handle serves one stream
// with the workspace of the call, and sums by atomic operations stay off, the default. A product under
// capture becomes part of the graph.
type blasHandle struct {
	functions functions
	handle    C.uintptr_t
}

// newBlasHandle allocates device memory.
func newBlasHandle(l *Library, s Stream) (LibraryHandle, error) {
	h := &blasHandle{functions: l.functions}
	if err := blasError("cublasCreate", C.create(h.functions["cublasCreate_v2"], &h.handle)); err != nil {
		return nil, err
	}
	if err := blasError("cublasSetStream", C.set_stream(h.functions["cublasSetStream_v2"], h.handle, handle(s.s))); err != nil {
		return nil, errors.Join(err, h.Destroy())
	}
	return h, nil
}

func (h *blasHandle) Destroy() error {
	return blasError("cublasDestroy", C.destroy(h.functions["cublasDestroy_v2"], h.handle))
}

// blasProduct is a prepared product, in memory of C.
type blasProduct struct{ p *C.struct_product }

// Prepare prepares a product. The library's matrices lie column by column, so it sees a row-major
// matrix as the transposed one, and c = a·b as cᵀ = bᵀ·aᵀ. The factors therefore change places,
// and a factor that is transposed in rows is transposed for the library too.
func (h *blasHandle) Prepare(c offload.LibraryCall) (LibraryCall, error) {
	from, f := c.(offload.Product), h.functions
	p := (*C.struct_product)(C.calloc(1, C.sizeof_struct_product))
	p.set_workspace, p.set_math = f["cublasSetWorkspace_v2"], f["cublasSetMathMode"]
	p.gemm, p.math = f["cublasSgemm_v2"], C.kBlasPedantic
	if from.Float64 {
		p.gemm, p.double_precision = f["cublasDgemm_v2"], 1
	}
	if from.TF32 {
		p.math = C.kBlasTF32
	}
	p.m, p.n, p.k = C.int(from.Columns), C.int(from.Rows), C.int(from.Depth)
	p.a, p.lda, p.ta = C.CUdeviceptr(from.B.Addr), C.int(from.B.Stride), operation(from.B)
	p.b, p.ldb, p.tb = C.CUdeviceptr(from.A.Addr), C.int(from.A.Stride), operation(from.A)
	p.c, p.ldc = C.CUdeviceptr(from.C.Addr), C.int(from.C.Stride)
	if from.Add {
		p.add = 1
	}
	p.work, p.work_bytes = C.CUdeviceptr(from.Work), C.size_t(from.WorkBytes)
	return blasProduct{p}, nil
}

func operation(m offload.Matrix) C.int {
	if m.Transposed {
		return C.kBlasTransposed
	}
	return C.kBlasNormal
}

func (p blasProduct) Free() { C.free(unsafe.Pointer(p.p)) }

// Issue issues a product to the handle's stream.
func (h *blasHandle) Issue(p LibraryCall) error {
	r := C.multiply(p.(blasProduct).p, h.handle)
	return blasError([]string{"cublasSetWorkspace", "cublasSetMathMode", "cublas gemm"}[r%4], r/4)
}

// blasStatuses are the names of cublasStatus_t.
var blasStatuses = map[C.int]string{
	1: "NOT_INITIALIZED", 3: "ALLOC_FAILED", 7: "INVALID_VALUE", 8: "ARCH_MISMATCH", 11: "MAPPING_ERROR",
	13: "EXECUTION_FAILED", 14: "INTERNAL_ERROR", 15: "NOT_SUPPORTED", 16: "LICENSE_ERROR",
}

// blasError makes an error of a status. An unsupported call wraps [offload.ErrRefused], and
// lack of memory is an error of the driver. A failed execution leaves the driver's error to its
// next call.
func blasError(call string, status C.int) error {
	if status == 0 {
		return nil
	}
	name, ok := blasStatuses[status]
	if !ok {
		return fmt.Errorf("%s: status %d", call, status)
	}
	name = "CUBLAS_STATUS_" + name
	switch status {
	case C.kBlasNotSupported:
		return fmt.Errorf("%s: %s: %w", call, name, offload.ErrRefused)
	case C.kBlasAllocFailed:
		return outOfMemory(call, name)
	}
	return fmt.Errorf("%s: %s", call, name)
}
