package main

import (
	"slices"

	"dahl/dag"
	"dahl/kernels"
	"dahl/kernels/calls"
)

func operand(name, dims string, modes ...dag.Mode) kernels.Operand {
	return kernels.Operand{Name: name, Dims: dims, Modes: modes}
}

func reads(name, dims string) kernels.Operand   { return operand(name, dims, dag.Read) }
func writes(name, dims string) kernels.Operand  { return operand(name, dims, dag.Write) }
func updates(name, dims string) kernels.Operand { return operand(name, dims, dag.ReadWrite) }
func sums(name, dims string) kernels.Operand    { return operand(name, dims, dag.Write, dag.ReadWrite) }

func ref(run32, run64 func(*calls.Call)) []calls.Variant {
	return []calls.Variant{{Name: "ref", Run32: run32, Run64: run64}}
}

// begun is a vector to which a kernel adds.
func begun[T calls.Float](a *calls.Arg) []T {
	all := calls.Data[T](a)
	if !a.Accumulates() {
		clear(all)
	}
	return all
}

// eachRow visits the last dimension of some operands, whose other extents are equal.
func eachRow[T calls.Float](c *calls.Call, visit func(row func(arg int) []T), args ...int) {
	outer := c.Args[args[0]].Shape
	outer = outer[:len(outer)-1]
	at, rows := make([]int, len(outer)), 1
	for _, extent := range outer {
		rows *= extent
	}
	for r := range rows {
		for d, extent := range slices.Backward(outer) {
			at[d] = r % extent
			r /= extent
		}
		visit(func(arg int) []T {
			a, first := &c.Args[arg], 0
			for d, i := range at {
				first += i * a.Stride[d]
			}
			return calls.Data[T](a)[first:][:a.Shape[len(outer)]]
		})
	}
}
