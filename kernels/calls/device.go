package calls

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"dahl/dag"
)

// The codes in which variants are written, as platform.Kind.Code names them.
const (
	GoCode   = "go" // functions of this program, with its assembly
	CUDACode = "cuda"
)

// RunsOn reports whether the variant is in the code that a device runs.
func (v *Variant) RunsOn(code string) bool { return cmp.Or(v.Code, GoCode) == code }

// RunsHere reports whether the processor of this process can run the variant.
func (v *Variant) RunsHere() bool { return v.RunsOn(GoCode) && v.Level.Supported() }

// TakesAll reports whether the variant takes any call of its operation.
func (v *Variant) TakesAll() bool { return v.Takes == nil && v.Types == nil }

// For reports whether the variant computes in an arithmetic type.
func (v *Variant) For(t dag.DType) bool {
	if t == dag.BFloat16 {
		return v.Library == "" && v.For(dag.Float32)
	}
	return v.Types == nil || slices.Contains(v.Types, t)
}

// Precisions of products: in the type itself, or with factors rounded as tensor cores take them.
const (
	FullPrecision = "full"
	TF32Precision = "tf32"
	BF16Precision = "bf16"

	TF32Bits, BF16Bits = 11, 8 // significant bits of a factor
)

// Precisions lists the names, the finest first.
func Precisions() []string { return []string{FullPrecision, TF32Precision, BF16Precision} }

// Within reports whether the variant rounds the factors of products no more coarsely than one of
// the Precisions does.
func (v *Variant) Within(precision string) bool {
	switch precision {
	case FullPrecision:
		return v.FactorBits == 0
	case TF32Precision:
		return v.FactorBits == 0 || v.FactorBits >= TF32Bits
	case BF16Precision:
		return v.FactorBits == 0 || v.FactorBits >= BF16Bits
	}
	panic("kernels: there is no precision " + precision)
}

// Fits fails if the variant does not take a call, does not compute in its type, or cannot count the
// elements of an operand.
func (v *Variant) Fits(s *Spec) error {
	if !v.For(s.Type) {
		return fmt.Errorf("variant %s of %s does not compute in %v", v.Name, s.Op, s.Type)
	}
	if v.Takes != nil {
		if err := v.Takes(s); err != nil {
			return err
		}
	}
	for i := range s.Operands {
		if elements := int64(s.Volume(i)); v.MostElements > 0 && elements > v.MostElements {
			return fmt.Errorf("operand %d of %s has %d elements, variant %s takes at most %d", i, s.Op, elements, v.Name, v.MostElements)
		}
	}
	return nil
}

// DeviceCall is one kernel call bound to memory of a device other than a CPU.
type DeviceCall struct {
	Type   dag.DType // arithmetic type
	Args   []DeviceArg
	Params []float64 // in the order of Kernel.Params
	Work   uint64    // address of the workspace, at least Variant.WorkspaceBytes, 256-byte aligned
}

// DeviceArg is a strided view of an operand in a device's memory, as [Arg] is in the memory of
// the process.
type DeviceArg struct {
	Mode   dag.Mode
	Type   dag.DType
	Addr   uint64 // of the first element
	Shape  []int  // extents of the region
	Stride []int  // distance in elements between neighbours, per dimension; the last is 1
}

// BindDevice returns the view of a box of a buffer whose storage begins at address
// base; a nil box is the whole buffer.
func BindDevice(base uint64, buf *dag.Buffer, box dag.Box, mode dag.Mode) DeviceArg {
	a := DeviceArg{Mode: mode, Type: buf.Type}
	var first int64
	a.Shape, a.Stride, first = view(buf, box)
	a.Addr = base + uint64(first)
	return a
}

// Accumulates reports whether the result is added to the operand's old contents.
func (a *DeviceArg) Accumulates() bool { return a.Mode == dag.ReadWrite }

// Param is a parameter by its index, as an integer for the device.
func (c *DeviceCall) Param(i int) int32 { return int32(c.Params[i]) }

// Symbol is the name of a kernel's function for the call's type: dots become underscores.
func (c *DeviceCall) Symbol(name string) string {
	suffix := "_f32"
	if c.Type == dag.Float64 {
		suffix = "_f64"
	}
	return strings.ReplaceAll(name, ".", "_") + suffix
}

// Part is one of equal parts along a dimension.
func (a DeviceArg) Part(dim, i, of int) DeviceArg {
	a.Shape = slices.Clone(a.Shape)
	a.Shape[dim] /= of
	a.Addr += uint64(int64(i*a.Shape[dim]*a.Stride[dim]) * a.Type.SizeBytes())
	return a
}

// PackedBytes is the room of a packed copy in a workspace.
func (a *DeviceArg) PackedBytes() int64 {
	bytes := a.Type.SizeBytes()
	for _, e := range a.Shape {
		bytes *= int64(e)
	}
	return (bytes + WorkAlignment - 1) &^ (WorkAlignment - 1)
}

// Packed reports whether the dimensions from one on have no gaps.
func (a *DeviceArg) Packed(from int) bool {
	step := 1
	for d := len(a.Shape) - 1; d >= from; d-- {
		if a.Shape[d] != 1 && a.Stride[d] != step {
			return false
		}
		step *= a.Shape[d]
	}
	return true
}

// Bias is the address of an optional operand, or 0.
func (call *DeviceCall) Bias(i int) uint64 {
	if i < len(call.Args) {
		return call.Args[i].Addr
	}
	return 0
}

// All is the operands of a call.
func (c *DeviceCall) All() (args []*DeviceArg) {
	for i := range c.Args {
		args = append(args, &c.Args[i])
	}
	return args
}

// Sample is the address of sample n: index n of the first dimension.
func (a *DeviceArg) Sample(n int) uint64 {
	return a.Addr + uint64(int64(n*a.Stride[0])*a.Type.SizeBytes())
}

// Triple is strides or extents of three dimensions.
type Triple [3]int

// Volume is the product of the three extents.
func (t Triple) Volume() int { return t[0] * t[1] * t[2] }

// Pixels and Strides describe samples, rows and columns of an image. Channels are its last dimension.
func (a *DeviceArg) Pixels() Triple { return Triple(a.Shape[:3]) }

// Strides are the distances of neighbours in elements, in the dimensions of Pixels.
func (a *DeviceArg) Strides() Triple { return Triple(a.Stride[:3]) }

// WorkAlignment is the alignment of any call's workspace, and of the library's part in it.
const WorkAlignment = 256
