//go:build cuda

package cuda

/*
#include <stdlib.h>

#include "blas.h"

// A product laid out and chosen once, column by column as the library has matrices.
struct lt_product {
	void *matmul, *operation, *a_layout, *b_layout, *c_layout;
	uint64_t algorithm[8];
	int double_precision, add;
	CUdeviceptr a, b, c, work;
	size_t work_bytes;
};

static int lt_make(void *f, void **made) { return ((lt_create)f)(made); }
static int lt_free(void *f, void *object) { return object ? ((lt_destroy)f)(object) : 0; }
static int lt_make_operation(void *f, void **made, int compute, int scale) {
	return ((lt_operation_create)f)(made, compute, scale);
}
static int lt_make_layout(void *f, void **made, int type, uint64_t rows, uint64_t columns, int64_t leading) {
	return ((lt_layout_create)f)(made, type, rows, columns, leading);
}

// lt_put sets an attribute of 4 or 8 bytes; where those lie in the value, the machine is little-endian.
static int lt_put(void *f, void *object, int attribute, uint64_t value, size_t bytes) {
	return ((lt_set)f)(object, attribute, &value, bytes);
}

// lt_choose asks for the best algorithm. There may be none, though the call succeeds.
static int lt_choose(void *f, void *handle, struct lt_product *p, void *preference, int *found) {
	struct lt_choice choice;
	int r = ((lt_heuristic)f)(handle, p->operation, p->a_layout, p->b_layout, p->c_layout, p->c_layout, preference, 1, &choice, found);
	if (r || !*found) return r;
	for (int i = 0; i < 8; i++) p->algorithm[i] = choice.algorithm[i];
	return choice.state;
}

// lt_multiply issues a product. Result and addend are one matrix, with one descriptor.
static int lt_multiply(const struct lt_product *p, void *handle, CUstream stream) {
	const void *alpha = scalar(p->double_precision, 1), *beta = scalar(p->double_precision, p->add);
	return ((lt_matmul)p->matmul)(handle, p->operation, alpha, (const void *)(uintptr_t)p->a, p->a_layout,
	                              (const void *)(uintptr_t)p->b, p->b_layout, beta, (const void *)(uintptr_t)p->c, p->c_layout,
	                              (void *)(uintptr_t)p->c, p->c_layout, p->algorithm, (void *)(uintptr_t)p->work, p->work_bytes,
	                              stream);
}
*/
import "C"

import (
	"errors"
	"fmt"
	"unsafe"

	"dahl/kernels/offload"
)

// ltFunctions are the names of the library's functions in use.
var ltFunctions = []string{
	"cublasLtCreate", "cublasLtDestroy", "cublasLtMatmulDescCreate", "cublasLtMatmulDescDestroy", "cublasLtMatmulDescSetAttribute",
	"cublasLtMatrixLayoutCreate", "cublasLtMatrixLayoutDestroy", "cublasLtMatmulPreferenceCreate",
	"cublasLtMatmulPreferenceDestroy", "cublasLtMatmulPreferenceSetAttribute", "cublasLtMatmulAlgoGetHeuristic", "cublasLtMatmul",
}

// ltHandle is cuBLASLt (NVIDIA, cuBLAS library user guide, "Using the cuBLASLt API") for one
// stream. It chooses an algorithm when a product is prepared, and not again.
//
// Its products have the same bits in every run of one version on one kind of device. NVIDIA says
// so of calls with a workspace of the user's. The choice follows from extents, strides, the size
// of the workspace, the alignment of matrices, which is the same in every plan, and the address
// of a bias. Split sums are added up apart, in a workspace. The other scheme adds parts into the
// result, and NVIDIA says of their order only that counters keep it.
type ltHandle struct {
	functions functions
	handle    unsafe.Pointer
	stream    C.CUstream
}

func newLtHandle(l *Library, s Stream) (LibraryHandle, error) {
	h := &ltHandle{functions: l.functions, stream: handle(s.s)}
	if err := blasError("cublasLtCreate", C.lt_make(h.functions["cublasLtCreate"], &h.handle)); err != nil {
		return nil, err
	}
	return h, nil
}

func (h *ltHandle) Destroy() error {
	return blasError("cublasLtDestroy", C.lt_free(h.functions["cublasLtDestroy"], h.handle))
}

// put sets an attribute of a descriptor by the named function.
func (f functions) put(name string, object unsafe.Pointer, attribute C.int, value uint64, bytes C.size_t) error {
	return blasError(name, C.lt_put(f[name], object, attribute, C.uint64_t(value), bytes))
}

// ltProduct is a prepared product.
type ltProduct struct {
	functions functions
	p         *C.struct_lt_product
}

// Prepare prepares a product. Matrices lie column by column, so the factors change places, as for
// cuBLAS. A bias of the result's rows becomes one of the library's columns, along which it adds
// biases. The rows of the first factor become columns of the library's second.
func (h *ltHandle) Prepare(c offload.LibraryCall) (LibraryCall, error) {
	from := c.(offload.FusedProduct)
	p := &ltProduct{h.functions, (*C.struct_lt_product)(C.calloc(1, C.sizeof_struct_lt_product))}
	p.p.matmul = h.functions["cublasLtMatmul"]
	p.p.a, p.p.b, p.p.c = C.CUdeviceptr(from.B.Addr), C.CUdeviceptr(from.A.Addr), C.CUdeviceptr(from.C.Addr)
	p.p.work, p.p.work_bytes = C.CUdeviceptr(from.Work), C.size_t(from.WorkBytes)
	if from.Add {
		p.p.add = 1
	}
	err := p.describe(&from)
	if err == nil {
		err = p.choose(h, &from)
	}
	if err != nil {
		p.Free()
		return nil, err
	}
	return p, nil
}

// describe makes the descriptors of the operation and of its matrices. It takes the default compute
// type. NVIDIA calls that at least as precise as the element type, and it leaves float64 its tensor
// cores.
func (p *ltProduct) describe(from *offload.FusedProduct) error {
	kind, compute := C.int(C.kLtFloat32), C.int(C.kLtCompute32)
	if from.Float64 {
		kind, compute, p.p.double_precision = C.kLtFloat64, C.kLtCompute64, 1
	}
	if from.TF32 {
		compute = C.kLtComputeTF32
	}
	f := p.functions
	err := blasError("cublasLtMatmulDescCreate", C.lt_make_operation(f["cublasLtMatmulDescCreate"], &p.p.operation, compute, kind))
	epilogue, vector := ltEpilogueOf(from)
	for _, a := range []struct {
		attribute C.int
		value     uint64
		bytes     C.size_t
	}{
		{C.kLtTransA, uint64(operation(from.B)), 4}, {C.kLtTransB, uint64(operation(from.A)), 4}, {C.kLtEpilogue, epilogue, 4}, {C.kLtVector, vector, 8},
	} {
		if err == nil {
			err = f.put("cublasLtMatmulDescSetAttribute", p.p.operation, a.attribute, a.value, a.bytes)
		}
	}
	layout := func(made *unsafe.Pointer, rows, columns int32, m offload.Matrix) {
		if m.Transposed {
			rows, columns = columns, rows
		}
		if err == nil {
			err = blasError("cublasLtMatrixLayoutCreate", C.lt_make_layout(f["cublasLtMatrixLayoutCreate"], made, kind,
				C.uint64_t(rows), C.uint64_t(columns), C.int64_t(m.Stride)))
		}
	}
	layout(&p.p.a_layout, from.Columns, from.Depth, from.B)
	layout(&p.p.b_layout, from.Depth, from.Rows, from.A)
	layout(&p.p.c_layout, from.Columns, from.Rows, from.C)
	return err
}

// ltEpilogueOf is the operation after the sums, and the vector that it reads or writes.
func ltEpilogueOf(from *offload.FusedProduct) (epilogue, vector uint64) {
	switch {
	case from.RowSums != 0 && (from.Bias != 0 || from.ReLU):
		panic("cuda: a product with row sums and a bias or ReLU")
	case from.RowSums != 0:
		return C.kLtSums, from.RowSums
	case from.Bias != 0 && from.ReLU:
		return C.kLtReLUBias, from.Bias
	case from.Bias != 0:
		return C.kLtBias, from.Bias
	case from.ReLU:
		return C.kLtReLU, 0
	}
	return C.kLtPlain, 0
}

// choose makes the library choose an algorithm within the workspace and the alignment of the
// matrices. The library looks at the alignment of the epilogue's vector itself.
func (p *ltProduct) choose(h *ltHandle, from *offload.FusedProduct) error {
	var preference unsafe.Pointer
	f := p.functions
	if err := blasError("cublasLtMatmulPreferenceCreate", C.lt_make(f["cublasLtMatmulPreferenceCreate"], &preference)); err != nil {
		return err
	}
	const name = "cublasLtMatmulPreferenceSetAttribute"
	err := errors.Join(f.put(name, preference, C.kLtMostWorkspace, uint64(from.WorkBytes), 8), f.put(name, preference, C.kLtReductions, C.kLtReduceApart, 4))
	size := uint64(4)
	if from.Float64 {
		size = 8
	}
	for i, m := range []offload.Matrix{from.B, from.A, from.C, from.C} {
		err = errors.Join(err, f.put(name, preference, C.int(C.kLtAlignment+i), alignment(m, size), 4))
	}
	if err == nil {
		var found C.int
		status := C.lt_choose(f["cublasLtMatmulAlgoGetHeuristic"], h.handle, p.p, preference, &found)
		err = blasError("cublasLtMatmulAlgoGetHeuristic", status)
		if status == C.kBlasNotSupported || status == 0 && found == 0 {
			err = ltRefusal(from)
		}
	}
	C.lt_free(f["cublasLtMatmulPreferenceDestroy"], preference)
	return err
}

// ltRefusal names a product for which there is no algorithm.
func ltRefusal(from *offload.FusedProduct) error {
	kind := "float32"
	switch {
	case from.Float64:
		kind = "float64"
	case from.TF32:
		kind = "tf32"
	}
	epilogue, _ := ltEpilogueOf(from)
	return fmt.Errorf("cuBLASLt has no algorithm in %s for %d×%d by %d×%d with epilogue %d: %w",
		kind, from.Rows, from.Depth, from.Depth, from.Columns, epilogue, offload.ErrRefused)
}

// storageAlignment is the alignment of every storage in a device's memory.
const storageAlignment = 64

// alignment is the greatest power of two that divides both the address of a matrix and the
// distance of its rows, up to storageAlignment. So a region has the same alignment in every plan.
// Algorithms want the distance aligned as they want the address.
func alignment(m offload.Matrix, size uint64) uint64 {
	both := m.Addr | uint64(m.Stride)*size | storageAlignment
	return both & -both
}

// Issue issues a product to the stream.
func (h *ltHandle) Issue(c LibraryCall) error {
	return blasError("cublasLtMatmul", C.lt_multiply(c.(*ltProduct).p, h.handle, h.stream))
}

func (p *ltProduct) Free() {
	C.lt_free(p.functions["cublasLtMatmulDescDestroy"], p.p.operation)
	for _, layout := range []unsafe.Pointer{p.p.a_layout, p.p.b_layout, p.p.c_layout} {
		C.lt_free(p.functions["cublasLtMatrixLayoutDestroy"], layout)
	}
	C.free(unsafe.Pointer(p.p))
}
