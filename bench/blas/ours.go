//go:build peers

package main

import (
	"fmt"
	"unsafe"

	"dahl/dag"
	"dahl/kernels"
	"dahl/kernels/simd"
)

// peakLoop returns a loop that does nothing but multiply and add in registers, and
// its floating-point operations. It runs beside the contestants, since the clock of a
// processor is not the same all the time.
func peakLoop[T simd.Float]() (run func(), flops float64) {
	const rounds = 10_000
	return func() { simd.PeakFMA[T](simd.Widest(), rounds) }, simd.PeakFMA[T](simd.Widest(), rounds)
}

// ourGemm is the pass of a dense layer that multiplies operands as they are stored; nil for
// two transposed ones, which no pass has.
func ourGemm[T simd.Float](s *gemmShape, a, b, c []T) gemmFunc[T] {
	op := "dense.dx"
	switch {
	case s.transA && s.transB:
		return nil
	case s.transA:
		op = "dense.dw"
	case s.transB:
		op = "dense"
	}
	stored := func(rows, columns int, transposed bool) []int {
		if transposed {
			rows, columns = columns, rows
		}
		return []int{rows, columns}
	}
	ours, err := bind(op, nil, [][]int{{s.m, s.n}, stored(s.m, s.k, s.transA), stored(s.k, s.n, s.transB)}, [][]T{c, a, b})
	if err != nil {
		panic(err)
	}
	return func(*gemmShape, []T, []T, []T) { ours.run() }
}

// ourCall is an operation of dahl in its default variant, bound to operands.
type ourCall struct {
	run     func()
	variant string
}

// openOurs binds a channels-last pass of a convolution on the whole batch; nil where this
// build has no fast variant of it.
func openOurs(pass convPass, s *convShape) (*ourCall, error) {
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
	var data [][]float32
	for _, shape := range call.shapes {
		buffer := dag.Buffer{Shape: shape}
		data = append(data, aligned[float32](int(buffer.Elems())))
	}
	ours, err := bind(call.op, map[string]float64{"pad": float64(s.pad), "stride": float64(s.stride), "relu": 0}, call.shapes, data)
	if err != nil {
		return nil, fmt.Errorf("%s of %s: %w", pass, s, err)
	}
	if ours.variant == "ref" {
		return nil, nil // takes seconds and says nothing
	}
	return ours, nil
}

// bind binds an operation to operands of some shapes.
func bind[T simd.Float](op string, params map[string]float64, shapes [][]int, data [][]T) (*ourCall, error) {
	kernel, err := kernels.KernelByName(op)
	if err != nil {
		return nil, err
	}
	spec := kernels.Spec{Op: op, Type: dag.Float32}
	if unsafe.Sizeof(data[0][0]) == 8 {
		spec.Type = dag.Float64
	}
	var c kernels.Call
	for _, name := range kernel.Params {
		spec.Params = append(spec.Params, dag.Param{Name: name, Value: params[name]})
		c.Params = append(c.Params, params[name])
	}
	for i, shape := range shapes {
		mode := kernel.Operands[i].Modes[0]
		buffer := dag.Buffer{Shape: shape, Type: spec.Type}
		c.Args = append(c.Args, kernels.Bind(unsafe.Pointer(&data[i][0]), &buffer, nil, mode))
		spec.Operands = append(spec.Operands, kernels.OperandSpec{Type: spec.Type, Mode: mode, Shape: shape})
	}
	if err := kernels.Validate(&spec); err != nil {
		return nil, err
	}
	v := kernel.Default()
	if v.WorkspaceBytes != nil {
		if bytes := v.WorkspaceBytes(&spec); bytes > 0 {
			c.Work = unsafe.Slice((*byte)(unsafe.Pointer(&aligned[float64](int(bytes+7) / 8)[0])), bytes)
		}
	}
	run := v.Run(spec.Type)
	return &ourCall{func() { run(&c) }, v.Name}, nil
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
