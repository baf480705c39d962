//go:build peers

package main

// #cgo LDFLAGS: -ldnnl
// #include <stdlib.h>
// #include "onednn.h"
import "C"

import (
	"fmt"
	"unsafe"
)

// startOneDNN makes the engine that all calls share.
func startOneDNN() error {
	if failed := C.onednn_start(); failed != 0 {
		return fmt.Errorf("oneDNN does not start: call %d", failed)
	}
	return nil
}

func oneDNNVersion() string {
	v := C.dnnl_version()
	return fmt.Sprintf("%d.%d.%d", v.major, v.minor, v.patch)
}

// oneDNNSgemm computes C = op(A)·op(B) over row-major matrices.
func oneDNNSgemm(s *gemmShape, a, b, c []float32) {
	status := C.dnnl_sgemm(C.char(transpose(s.transA)), C.char(transpose(s.transB)), C.dnnl_dim_t(s.m), C.dnnl_dim_t(s.n), C.dnnl_dim_t(s.k),
		1, (*C.float)(unsafe.Pointer(&a[0])), C.dnnl_dim_t(s.lda()), (*C.float)(unsafe.Pointer(&b[0])), C.dnnl_dim_t(s.ldb()),
		0, (*C.float)(unsafe.Pointer(&c[0])), C.dnnl_dim_t(s.n))
	if status != C.dnnl_success {
		panic(fmt.Sprintf("blas: dnnl_sgemm returns %d", status))
	}
}

// openOneDNN makes one pass of a convolution in C's memory, until it is closed.
func openOneDNN(pass int, s *convShape) (run func(), implementation string, closed func(), err error) {
	c := (*C.conv)(C.calloc(1, C.sizeof_conv))
	shape := C.conv_shape{n: C.int(s.n), c: C.int(s.c), h: C.int(s.h), f: C.int(s.f), k: C.int(s.k), stride: C.int(s.stride), pad: C.int(s.pad), o: C.int(s.out())}
	if failed := C.conv_open(c, C.int(pass), &shape); failed != 0 {
		return nil, "", nil, fmt.Errorf("oneDNN, %s of %s: call %d fails", convPasses[pass], s, failed)
	}
	run = func() {
		if failed := C.conv_run(c); failed != 0 {
			panic(fmt.Sprintf("blas: oneDNN: call %d fails", failed))
		}
	}
	return run, C.GoString(c.implementation), func() { C.conv_close(c); C.free(unsafe.Pointer(c)) }, nil
}
