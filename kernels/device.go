package kernels

import (
	"slices"

	"dahl/dag"
	"dahl/kernels/calls"
	"dahl/kernels/offload"
)

// HostKind is the kind of devices on which Host operations run, as package platform calls it.
const HostKind = "cpu"

// DefaultFor returns the variant that a device with a code runs if no variant is known to be the
// fastest. That is [Kernel.Default] for GoCode, else the first of the table for both types and any device of
// the code, without a library. Nil means that the operation cannot run.
func (k *Kernel) DefaultFor(code string) *calls.Variant {
	if code == calls.GoCode {
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
func (k *Kernel) VariantFor(code string, t dag.DType, name string) (*calls.Variant, bool) {
	if v, ok := k.Variant(name); ok && v.RunsOn(code) && v.For(t) {
		return v, true
	}
	return nil, false
}

// On CUDA devices a call of several blocks, the groups of a convolution, is the calls of its blocks one after the other.
// Which part of an operand belongs to a block follows from the statement: its share of each dimension with an index such as
// "g:f". The blocks have the whole workspace in turn.

// blockDims says where the blocks of an operation lie.
type blockDims struct {
	param string // their number
	at    int    // of the parameter in Call.Params
	dims  []int  // by operand: the dimension that falls into blocks; -1 means none
}

// blockDimsOf finds them in a statement; ok is false where there are none.
func blockDimsOf(k *Kernel) (b blockDims, ok bool) {
	for _, indices := range k.statement.operands {
		dim := slices.IndexFunc(indices, func(x Subscript) bool { return x.Block != "" })
		if b.dims = append(b.dims, dim); dim >= 0 {
			loop := indices[dim].Block
			b.param = k.statement.sizes[slices.IndexFunc(k.statement.sizes, func(z size) bool { return z.loop == loop })].param
		}
	}
	b.at = slices.Index(k.Parameters(), b.param)
	return b, b.param != ""
}

// eachBlock makes the CUDA variants of an operation, which know one block, variants of any number of them.
func (k *Kernel) eachBlock() {
	b, ok := blockDimsOf(k)
	for i := range k.Variants {
		if v := &k.Variants[i]; ok && v.Code == calls.CUDACode && v.Library == "" && !v.Blocks {
			launches, workspace := v.Launches, v.WorkspaceBytes
			v.Launches = func(c *calls.DeviceCall) []offload.Launch { return b.launches(c, launches) }
			v.WorkspaceBytes = func(s *calls.Spec) int64 { return workspace(b.specOf(s)) }
		}
	}
}

func (b *blockDims) launches(c *calls.DeviceCall, one func(*calls.DeviceCall) []offload.Launch) []offload.Launch {
	number := int(c.Params[b.at])
	if number == 1 {
		return one(c)
	}
	var all []offload.Launch
	for g := range number {
		block := *c
		block.Params = slices.Clone(c.Params)
		block.Params[b.at] = 1
		block.Args = slices.Clone(c.Args)
		for i := range block.Args {
			if dim := b.dims[i]; dim >= 0 {
				block.Args[i] = block.Args[i].Part(dim, g, number)
			}
		}
		all = append(all, one(&block)...)
	}
	return all
}

// specOf is the call of one block.
func (b *blockDims) specOf(s *calls.Spec) *calls.Spec {
	number, several := s.Params.Get(b.param)
	if !several {
		return s
	}
	one := *s
	one.Params = slices.DeleteFunc(slices.Clone(s.Params), func(p dag.Param) bool { return p.Name == b.param })
	one.Operands = slices.Clone(s.Operands)
	for i := range one.Operands {
		if dim := b.dims[i]; dim >= 0 {
			shape := slices.Clone(one.Operands[i].Shape)
			shape[dim] /= int(number)
			one.Operands[i].Shape = shape
		}
	}
	return &one
}
