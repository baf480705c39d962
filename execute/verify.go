package execute

import (
	"errors"
	"hash/maphash"
	"unsafe"

	"dahl/dag"
	"dahl/kernels"
)

var errReadChanged = errors.New("an operand that it only reads changed while it ran")

// verifier notices read-only operands that change while their task runs: a kernel writes where it
// must not, or an order is missing.
type verifier struct{ seed maphash.Seed }

// sum is a checksum of the elements that a task may only read.
func (v *verifier) sum(g *dag.Graph, t dag.TaskID, args []kernels.Arg) uint64 {
	var h maphash.Hash
	h.SetSeed(v.seed)
	for i := range args {
		if args[i].Mode == dag.Read {
			size := g.Buffers[g.Tasks[t].Accesses[i].Buffer].Type.SizeBytes()
			eachRow(&args[i], int(size), func(row []byte) { h.Write(row) })
		}
	}
	return h.Sum64()
}

// eachRow visits the bytes of an operand, innermost row by innermost row; size is the size of an
// element.
func eachRow(a *kernels.Arg, size int, visit func(row []byte)) {
	rank := len(a.Shape)
	// The argument's first element is the start of its data, whatever the type.
	first := unsafe.Pointer(unsafe.SliceData(kernels.Data[uint8](a)))
	width := size
	if rank > 0 {
		width *= a.Shape[rank-1]
	}
	var walk func(d, offset int)
	walk = func(d, offset int) {
		if d >= rank-1 {
			visit(unsafe.Slice((*byte)(unsafe.Add(first, offset*size)), width))
			return
		}
		for i := range a.Shape[d] {
			walk(d+1, offset+i*a.Stride[d])
		}
	}
	walk(0, 0)
}
