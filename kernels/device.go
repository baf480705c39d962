package kernels

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"dahl/dag"
	"dahl/kernels/offload"
)

// The codes in which variants are written, as platform.Kind.Code names them.
const (
	GoCode   = "go" // functions of this program, with its assembly
	CUDACode = "cuda"
)

// HostKind is the kind of devices on which Host operations run, as package platform calls it.
const HostKind = "cpu"

// RunsOn reports whether the variant is in the code that a device runs.
func (v *Variant) RunsOn(code string) bool { return cmp.Or(v.Code, GoCode) == code }

// RunsHere reports whether the processor of this process can run the variant.
func (v *Variant) RunsHere() bool { return v.RunsOn(GoCode) && v.Level.Supported() }

// takesAll reports whether the variant takes any call of its operation.
func (v *Variant) takesAll() bool { return v.Takes == nil && v.Types == nil }

// For reports whether the variant computes in an arithmetic type.
func (v *Variant) For(t dag.DType) bool { return v.Types == nil || slices.Contains(v.Types, t) }

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
		if elements := int64(s.volume(i)); v.MostElements > 0 && elements > v.MostElements {
			return fmt.Errorf("operand %d of %s has %d elements, variant %s takes at most %d", i, s.Op, elements, v.Name, v.MostElements)
		}
	}
	return nil
}

// DefaultFor returns the variant that a device runs in its code if nothing says which is the
// fastest. That is [Kernel.Default] for GoCode, else the first of the table that any device of
// the code has for both types without a library. It is nil where the operation cannot run.
func (k *Kernel) DefaultFor(code string) *Variant {
	if code == GoCode {
		return k.Default()
	}
	for i := range k.Variants {
		if v := &k.Variants[i]; v.RunsOn(code) && v.Types == nil && v.Capability == 0 && v.Library == "" {
			return v
		}
	}
	return nil
}

// VariantFor finds a variant by name among those in a code and for an arithmetic type.
func (k *Kernel) VariantFor(code string, t dag.DType, name string) (*Variant, bool) {
	if v, ok := k.Variant(name); ok && v.RunsOn(code) && v.For(t) {
		return v, true
	}
	return nil, false
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

// param is a parameter by its index, as an integer for the device.
func (c *DeviceCall) param(i int) int32 { return int32(c.Params[i]) }

// symbol is the name of a kernel's function for the call's type: dots become underscores.
func (c *DeviceCall) symbol(name string) string {
	suffix := "_f32"
	if c.Type == dag.Float64 {
		suffix = "_f64"
	}
	return strings.ReplaceAll(name, ".", "_") + suffix
}

// onCUDA is the variant "cuda" of an operation without a workspace.
func onCUDA(doc string, launches func(*DeviceCall) []offload.Launch) []Variant {
	return []Variant{{Name: "cuda", Code: CUDACode, Doc: doc, Launches: launches}}
}
