package calls

import (
	"unsafe"

	"dahl/dag"
)

// Float is the set of arithmetic types.
type Float interface{ float32 | float64 }

// Element is the set of element types of operands. A bfloat16 is seen by its bits.
type Element interface {
	uint8 | uint16 | int32 | int64 | float32 | float64
}

// Call is one kernel call with its data bound: built once, run many times.
type Call struct {
	Args   []Arg
	Params []float64 // in the order of Kernel.Params
	Work   []byte    // workspace, at least Variant.WorkspaceBytes, 64-byte aligned

	narrow []Arg // the operands of a call in bfloat16 whose Args are float32, see [Call.Widen]
	wide   []int // strides of these Args

	// Norm and Room belong to convolutions with the attribute Norm: scales of the data, and room for normalised data. Nil Room
	// means that a variant reads the data as they are.
	Norm    Arg
	Room    []byte
	Strides [4]int // of normalised data
}

// Arg is a strided view of an operand: the region of a buffer that a task names.
// Buffers are row-major, so the last stride is always 1; kernels rely on it.
type Arg struct {
	Mode   dag.Mode
	Type   dag.DType
	Shape  []int // extents of the region
	Stride []int // distance in elements between neighbours, per dimension
	First  unsafe.Pointer
	Elems  int // number of elements from the first to the last, inclusive
}

// Bind returns the view of a box of a buffer whose storage begins at base; a nil
// box is the whole buffer. The caller keeps the storage alive.
func Bind(base unsafe.Pointer, buf *dag.Buffer, box dag.Box, mode dag.Mode) Arg {
	a := Arg{Mode: mode, Type: buf.Type, Elems: 1}
	var first int64
	a.Shape, a.Stride, first = view(buf, box)
	for d, e := range a.Shape {
		a.Elems += (e - 1) * a.Stride[d]
	}
	a.First = unsafe.Add(base, first)
	return a
}

// view returns the extents of a box of a buffer, the distances in elements between
// neighbours, and the byte at which it begins.
func view(buf *dag.Buffer, box dag.Box) (shape, stride []int, first int64) {
	rank := len(buf.Shape)
	shape, stride = make([]int, rank), make([]int, rank)
	step := 1
	for d := rank - 1; d >= 0; d-- {
		r := dag.Range{Lo: 0, Hi: buf.Shape[d]}
		if box != nil {
			r = box[d]
		}
		shape[d], stride[d] = r.Len(), step
		first += int64(r.Lo * step)
		step *= buf.Shape[d]
	}
	return shape, stride, first * buf.Type.SizeBytes()
}

// Data returns the elements from the first of the region to the last; element
// (i, j, …) is at i*Stride[0] + j*Stride[1] + …. T must be the buffer's type.
func Data[T Element](a *Arg) []T {
	return unsafe.Slice((*T)(a.First), a.Elems)
}

// Accumulates reports whether the result is added to the operand's old contents.
func (a *Arg) Accumulates() bool { return a.Mode == dag.ReadWrite }
