package calls

import (
	"dahl/dag"
	"dahl/kernels/offload"
	"dahl/kernels/simd"
)

// Variant is one implementation of a kernel, for float32 and float64 unless it says otherwise, and for bfloat16 where it has float32.
type Variant struct {
	Name string // "ref", "go", "avx2", "avx512", "cuda"; unique in its kernel
	Doc  string

	// Code is the code of the variant, such as [CUDACode]; a device must run it. Empty means [GoCode].
	Code string

	Level        simd.Level // the instructions that a variant in GoCode needs
	Run32, Run64 func(c *Call)
	Run16        func(c *Call) // of calls in bfloat16; the table of operations makes it from Run32

	// Launches are the launches of a call on a device with a memory of its own, one after the other
	// on one stream. They depend on the call alone, so they are made once and used in every step.
	// Types lists its types. Nil means both float types. Capability is the least capability of the device, in the
	// numbers of the code; 80 is CUDA's 8.0. Zero means any.
	Launches   func(c *DeviceCall) []offload.Launch
	Types      []dag.DType
	Capability int

	// FactorBits is the number of significant bits to which the factors of products are rounded,
	// TF32Bits or BF16Bits. Zero means that they are not rounded.
	FactorBits int

	// Transforms says that a convolution is computed by Winograd's algorithm. Package kerneltest has the bounds of its
	// errors.
	Transforms bool

	// Library names the library that does the LibraryCall of a variant, before its Launches.
	// Empty means none. Before are launches that come first, to lay operands out for the library.
	// Nil means none. A machine may lack the library, so such a variant is no default. It runs on
	// request, or where its measured time is the best.
	Library     string
	LibraryCall func(c *DeviceCall) offload.LibraryCall
	Before      func(c *DeviceCall) []offload.Launch

	// Blocks says that the variant takes calls of several blocks, as the heads of an attention. Other variants on CUDA devices
	// are called for one block after the other.
	Blocks bool

	// Takes fails for calls that the variant cannot do, see Fits. Nil means that it takes all.
	Takes func(s *Spec) error

	// MostElements is the most elements that an operand may have, see Fits. Zero means any number.
	MostElements int64

	// WorkspaceBytes is the scratch of one call that Fits. Nil means none.
	WorkspaceBytes func(s *Spec) int64
}

// Run returns the function for an arithmetic type.
func (v *Variant) Run(t dag.DType) func(c *Call) {
	switch t {
	case dag.Float64:
		return v.Run64
	case dag.BFloat16:
		return v.Run16
	}
	return v.Run32
}

// Spec is a call without data. Shape checks, work and workspace depend on it.
type Spec struct {
	Op       string
	Type     dag.DType // Float32, Float64 or BFloat16
	Operands []OperandSpec
	Params   dag.Params
}

// OperandSpec is the type, mode and extents of one operand.
type OperandSpec struct {
	Type  dag.DType
	Mode  dag.Mode
	Shape []int
}

// SpecOf returns the spec of a task; buffer looks its buffers up.
func SpecOf(t *dag.Task, buffer func(dag.BufferID) dag.Buffer) *Spec {
	s := &Spec{Op: t.Op, Type: t.Type, Params: t.Params, Operands: make([]OperandSpec, 0, len(t.Accesses))}
	for _, a := range t.Accesses {
		b := buffer(a.Buffer)
		o := OperandSpec{Type: b.Type, Mode: a.Mode, Shape: b.Shape}
		if a.Box != nil {
			o.Shape = make([]int, len(a.Box))
			for d, r := range a.Box {
				o.Shape[d] = r.Len()
			}
		}
		s.Operands = append(s.Operands, o)
	}
	return s
}

// Param returns a parameter. Check has verified that it is present.
func (s *Spec) Param(name string) float64 {
	v, ok := s.Params.Get(name)
	if !ok {
		panic("kernels: " + s.Op + " has no parameter " + name)
	}
	return v
}

// Bytes is the size of all operands. A ReadWrite operand counts twice.
func (s *Spec) Bytes() int64 {
	var total int64
	for i, o := range s.Operands {
		n := int64(s.Volume(i)) * o.Type.SizeBytes()
		if o.Mode == dag.ReadWrite || o.Mode == dag.Reduce {
			n *= 2
		}
		total += n
	}
	return total
}

// Key is the shape key under which performance models know the call: the shapes of the operands,
// then the parameters by name, as a graph has them.
func (s *Spec) Key() string {
	return dag.ShapeKey(len(s.Operands), func(i int) ([]int, dag.Mode) { return s.Operands[i].Shape, s.Operands[i].Mode }, s.Params)
}
