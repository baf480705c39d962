//go:build peers

package main

import (
	"fmt"

	"dahl/dag"
	"dahl/kernels"
	"dahl/kernels/kerneltest"
)

// ourCall is an operation of dahl in its default variant, bound to operands that begin a
// cache line.
type ourCall struct {
	run     func()
	variant string
	args    []kernels.Arg
}

// bind binds an operation to operands of some shapes, none of whose numbers is zero or tiny.
func bind(op string, t dag.DType, shapes [][]int, params dag.Params) *ourCall {
	k, err := kernels.KernelByName(op)
	if err != nil {
		panic("blas: " + err.Error())
	}
	c := kerneltest.New(k, t, shapes, kerneltest.FirstModes(k), params, 0)
	if err := kernels.Validate(&c.Spec); err != nil {
		panic(fmt.Sprintf("blas: %s of %v: %v", op, shapes, err))
	}
	for i := range shapes {
		c.Set(i, func(j int) float64 { return float64(j%13+1) * 0.01 })
	}
	v := k.Default()
	run, call := v.Run(t), c.Call(v)
	return &ourCall{func() { run(call) }, v.Name, call.Args}
}

// ourGemm is the pass of a dense layer that multiplies operands as they are stored; of two
// transposed ones, which no pass has, it has the memory only.
func ourGemm(s *gemmShape, t dag.DType) *ourCall {
	op, a, b := "dense.dx", s.a(), s.b()
	switch {
	case s.transA && s.transB:
		c := bind(op, t, [][]int{{s.m, s.n}, {s.m, s.k}, {s.k, s.n}}, nil)
		c.run = nil
		return c
	case s.transA:
		op = "dense.dw"
	case s.transB:
		op = "dense"
	}
	return bind(op, t, [][]int{{s.m, s.n}, a, b}, nil)
}

// ourConv is a channels-last pass of a convolution on the whole batch.
func ourConv(pass int, s *convShape) *ourCall {
	o := s.out()
	x, y, w, bias := []int{s.n, s.h, s.h, s.c}, []int{s.n, o, o, s.f}, []int{s.k, s.k, s.c, s.f}, []int{s.f}
	call := [...]struct {
		op     string
		shapes [][]int
	}{
		{"conv2d.nhwc", [][]int{y, x, w, bias}},
		{"conv2d.nhwc.dx", [][]int{x, y, {s.k, s.k, s.f, s.c}}},
		{"conv2d.nhwc.dw", [][]int{w, y, x, bias}},
	}[pass]
	c := bind(call.op, dag.Float32, call.shapes, kerneltest.ConvReLUParams(float64(s.pad), float64(s.stride), 0))
	if c.variant == "ref" {
		c.run, c.variant = nil, "–" // it takes seconds and says nothing
	}
	return c
}
