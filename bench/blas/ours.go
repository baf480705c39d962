//go:build peers

package main

import (
	"fmt"
	"unsafe"

	"dahl/dag"
	"dahl/kernels"
	"dahl/kernels/simd"
)

// widest is the widest set of instructions that this machine has.
func widest() simd.Level {
	level := simd.Go
	for _, l := range simd.Levels() {
		if l.Supported() {
			level = l
		}
	}
	return level
}

// peakLoop returns a loop that does nothing but multiply and add in registers, and
// its floating-point operations. It runs beside the contestants, since the clock of a
// processor is not the same all the time.
func peakLoop[T simd.Float]() (run func(), flops float64) {
	const rounds = 10_000
	return func() { simd.PeakFMA[T](widest(), rounds) }, simd.PeakFMA[T](widest(), rounds)
}

// ourGemm is dahl's product, with its workspace.
func ourGemm[T simd.Float](s *gemmShape) gemmFunc[T] {
	g := simd.Gemm[T]{M: s.m, N: s.n, K: s.k, ARow: s.k, ACol: 1, BRow: s.n, BCol: 1, CRow: s.n}
	if s.transA {
		g.ARow, g.ACol = 1, s.m
	}
	if s.transB {
		g.BRow, g.BCol = 1, s.k
	}
	g.Work = aligned[T](g.WorkElems(widest()))
	return func(_ *gemmShape, a, b, c []T) {
		g.A, g.B, g.C = a, b, c
		g.Run(widest())
	}
}

// ourConv is a channels-last pass of a convolution in dahl, on the whole batch.
type ourConv struct {
	run     func()
	variant string
	storage [][]float32 // what the call points into
}

// openOurs binds the operation; nil where this build has no fast variant of it.
func openOurs(pass convPass, s *convShape) (*ourConv, error) {
	o := s.out()
	x, y, bias := []int{s.n, s.h, s.h, s.c}, []int{s.n, o, o, s.f}, []int{s.f}
	w := []int{s.k, s.k, s.c, s.f}
	calls := [...]struct {
		op     string
		shapes [][]int
	}{
		forward:        {"conv2d.nhwc", [][]int{y, x, w, bias}},
		inputGradient:  {"conv2d.nhwc.dx", [][]int{x, y, {s.k, s.k, s.f, s.c}}},
		weightGradient: {"conv2d.nhwc.dw", [][]int{w, y, x, bias}},
	}
	call := calls[pass]
	kernel, err := kernels.KernelByName(call.op)
	if err != nil {
		return nil, err
	}
	values := map[string]float64{"pad": float64(s.pad), "stride": float64(s.stride), "relu": 0}
	spec := kernels.Spec{Op: call.op, Type: dag.Float32}
	var c kernels.Call
	for _, name := range kernel.Params {
		spec.Params = append(spec.Params, dag.Param{Name: name, Value: values[name]})
		c.Params = append(c.Params, values[name])
	}
	ours := &ourConv{}
	for i, shape := range call.shapes {
		mode := kernel.Operands[i].Modes[0]
		buffer := dag.Buffer{Shape: shape, Type: dag.Float32}
		data := aligned[float32](int(buffer.Elems()))
		ours.storage = append(ours.storage, data)
		c.Args = append(c.Args, kernels.Bind(unsafe.Pointer(&data[0]), &buffer, nil, mode))
		spec.Operands = append(spec.Operands, kernels.OperandSpec{Type: dag.Float32, Mode: mode, Shape: shape})
	}
	if err := kernels.Validate(&spec); err != nil {
		return nil, fmt.Errorf("%s of %s: %w", pass, s, err)
	}
	v := kernel.Default()
	if v.Name == "ref" {
		return nil, nil // takes seconds and says nothing
	}
	if v.WorkspaceBytes != nil {
		work := aligned[float32](int(v.WorkspaceBytes(&spec)+3) / 4)
		ours.storage = append(ours.storage, work)
		if len(work) > 0 {
			c.Work = unsafe.Slice((*byte)(unsafe.Pointer(&work[0])), 4*len(work))
		}
	}
	run := v.Run(dag.Float32)
	ours.variant, ours.run = v.Name, func() { run(&c) }
	return ours, nil
}

// aligned makes n numbers that begin a cache line, none of them zero or tiny.
func aligned[T simd.Float](n int) []T {
	var zero T
	line := 64 / int(unsafe.Sizeof(zero))
	all := make([]T, n+line)
	for i := range all {
		all[i] = T(i%13+1) * 0.01
	}
	first := 0
	for uintptr(unsafe.Pointer(&all[first]))%64 != 0 {
		first++
	}
	return all[first : first+n]
}
