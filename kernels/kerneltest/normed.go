package kerneltest

import (
	"slices"

	"dahl/dag"
	"dahl/kernels"
	"dahl/kernels/calls"
)

// plain is the case itself, or for a convolution that normalises its data the convolution of normalised data. So the
// bounds of a convolution hold. Data are normalised here in the type of the case, with every product and sum rounded.
func (c *Case) plain() *Case {
	if !c.Kernel.With.Has(calls.Norm) {
		return c
	}
	op := kernels.Written(c.Kernel.Base, c.Kernel.With&^calls.Norm)
	k, err := kernels.KernelByName(op)
	if err != nil {
		panic("kerneltest: " + err.Error())
	}
	p, at := *c, c.Operand("k")
	p.Kernel, p.Spec.Op = k, op
	p.Spec.Operands = slices.Delete(slices.Clone(c.Spec.Operands), at, at+1)
	p.Boxes, p.Buffers = slices.Delete(slices.Clone(c.Boxes), at, at+1), slices.Delete(slices.Clone(c.Buffers), at, at+1)
	p.Data = slices.Delete(slices.Clone(c.Data), at, at+1)
	x, scale := at-1, c.Values(at)
	values, channels := c.Values(x), c.Spec.Operands[x].Shape[3]
	p.Data[x] = slices.Clone(p.Data[x])
	p.Set(x, func(j int) float64 {
		ch := j % channels
		v := c.rounded(c.rounded(values[j]-scale[ch])*scale[channels+ch]) + scale[2*channels+ch]
		return max(c.rounded(v), 0)
	})
	return &p
}

// rounded is a value in the type of the case.
func (c *Case) rounded(v float64) float64 {
	if c.Spec.Type == dag.Float32 {
		return float64(float32(v))
	}
	return v
}
