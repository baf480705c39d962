//go:build peers

package main

// #cgo LDFLAGS: -lopenblas
// #include <cblas.h>
// char *openblas_get_corename(void);
// char *openblas_get_config(void);
import "C"

import "unsafe"

func openBLASVersion() string { return C.GoString(C.openblas_get_config()) }

func openBLASCore() string { return C.GoString(C.openblas_get_corename()) }

func cblasTrans(t bool) C.enum_CBLAS_TRANSPOSE {
	if t {
		return C.CblasTrans
	}
	return C.CblasNoTrans
}

// openBLASSgemm and openBLASDgemm compute C = op(A)·op(B) over row-major matrices.
func openBLASSgemm(s *gemmShape, a, b, c []float32) {
	C.cblas_sgemm(C.CblasRowMajor, cblasTrans(s.transA), cblasTrans(s.transB), C.int(s.m), C.int(s.n), C.int(s.k),
		1, (*C.float)(unsafe.Pointer(&a[0])), C.int(s.lda()), (*C.float)(unsafe.Pointer(&b[0])), C.int(s.ldb()),
		0, (*C.float)(unsafe.Pointer(&c[0])), C.int(s.n))
}

func openBLASDgemm(s *gemmShape, a, b, c []float64) {
	C.cblas_dgemm(C.CblasRowMajor, cblasTrans(s.transA), cblasTrans(s.transB), C.int(s.m), C.int(s.n), C.int(s.k),
		1, (*C.double)(unsafe.Pointer(&a[0])), C.int(s.lda()), (*C.double)(unsafe.Pointer(&b[0])), C.int(s.ldb()),
		0, (*C.double)(unsafe.Pointer(&c[0])), C.int(s.n))
}
