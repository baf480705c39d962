package kerneltest

import (
	"math"
	"math/rand/v2"
	"slices"
	"unsafe"

	"dahl/dag"
	"dahl/kernels"
	"dahl/kernels/calls"
)

// Case is a kernel call with its data. With a margin, every operand is the middle of a larger
// buffer. Then regions have strides, and a test can check that the elements around them are
// untouched.
type Case struct {
	Spec    calls.Spec
	Kernel  *kernels.Kernel
	Boxes   []dag.Box
	Buffers []dag.Buffer
	Data    [][]byte // of the buffers, at multiples of 64
}

// New builds a case of an operation. shapes and modes are by operand. margin is the number of
// foreign elements before and after each dimension. Data are zero.
func New(k *kernels.Kernel, real dag.DType, shapes [][]int, modes []dag.Mode, params dag.Params, margin int) *Case {
	c := &Case{Kernel: k, Spec: calls.Spec{Op: k.Op, Type: real, Params: params}}
	for i, shape := range shapes {
		t := k.Operands[i].Kind.DType(real)
		buf := dag.Buffer{Name: k.Operands[i].Name, Type: t}
		box := dag.Box{}
		for _, e := range shape {
			buf.Shape = append(buf.Shape, e+2*margin)
			box = append(box, dag.Range{Lo: margin, Hi: margin + e})
		}
		c.Spec.Operands = append(c.Spec.Operands, calls.OperandSpec{Type: t, Mode: modes[i], Shape: shape})
		c.Buffers, c.Boxes = append(c.Buffers, buf), append(c.Boxes, box)
		c.Data = append(c.Data, aligned(buf.Bytes()))
	}
	return c
}

// aligned returns n bytes at a multiple of 64.
func aligned(n int64) []byte {
	raw := make([]byte, n+64)
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(raw))) & 63
	return raw[skip:][:n:n]
}

// Call binds the data for a variant for CPUs, which decides the size of the workspace. The
// workspace is full of NaN.
func (c *Case) Call(v *calls.Variant) *calls.Call {
	call := &calls.Call{Params: c.Params()}
	for i := range c.Buffers {
		base := unsafe.Pointer(unsafe.SliceData(c.Data[i]))
		call.Args = append(call.Args, calls.Bind(base, &c.Buffers[i], c.Boxes[i], c.Spec.Operands[i].Mode))
	}
	if v.WorkspaceBytes != nil {
		call.Work = aligned(v.WorkspaceBytes(&c.Spec))
		for i := range call.Work {
			call.Work[i] = 0xff
		}
	}
	return call
}

// Runs reports whether the processor of this process can run a variant on the case.
func (c *Case) Runs(v *calls.Variant) bool { return v.RunsHere() && v.Fits(&c.Spec) == nil }

// Run runs a variant for CPUs on the data.
func (c *Case) Run(v *calls.Variant) { v.Run(c.Spec.Type)(c.Call(v)) }

// DeviceCall binds copies of the buffers at addresses of a device's memory; work is the
// address of the workspace.
func (c *Case) DeviceCall(bases []uint64, work uint64) *calls.DeviceCall {
	call := &calls.DeviceCall{Type: c.Spec.Type, Params: c.Params(), Work: work}
	for i, base := range bases {
		call.Args = append(call.Args, calls.BindDevice(base, &c.Buffers[i], c.Boxes[i], c.Spec.Operands[i].Mode))
	}
	return call
}

// Params are the parameters in the order of a call.
func (c *Case) Params() []float64 { return c.Kernel.Values(&c.Spec) }

// Value is a parameter, or what stands for it, as an integer.
func (c *Case) Value(name string) int {
	i := slices.Index(c.Kernel.Parameters(), name)
	return int(c.Params()[i])
}

// Clone copies the data, so that another variant starts from equal data.
func (c *Case) Clone() *Case {
	d := *c
	d.Data = nil
	for _, b := range c.Data {
		e := aligned(int64(len(b)))
		copy(e, b)
		d.Data = append(d.Data, e)
	}
	return &d
}

// WithoutBias is the same step of weights without a bias, from a case with one.
func (c *Case) WithoutBias() *Case {
	k, err := kernels.KernelByName(kernels.Written(c.Kernel.Base, c.Kernel.With|calls.NoBias))
	if err != nil {
		panic(err)
	}
	var of []int
	for i, o := range c.Kernel.Operands[:len(c.Data)] {
		if o.Name != "b" && o.Name != "vb" {
			of = append(of, i)
		}
	}
	return c.Part(k, of)
}

// Part is a call of another operation with some of the operands, from equal data.
func (c *Case) Part(k *kernels.Kernel, operands []int) *Case {
	all := c.Clone()
	d := &Case{Spec: c.Spec, Kernel: k}
	d.Spec.Op, d.Spec.Operands = k.Op, nil
	for _, i := range operands {
		d.Spec.Operands = append(d.Spec.Operands, c.Spec.Operands[i])
		d.Boxes, d.Buffers, d.Data = append(d.Boxes, c.Boxes[i]), append(d.Buffers, c.Buffers[i]), append(d.Data, all.Data[i])
	}
	return d
}

// Operand is the index of the named operand, or -1.
func (c *Case) Operand(name string) int {
	return slices.IndexFunc(c.Kernel.Operands, func(o kernels.Operand) bool { return o.Name == name })
}

// Values returns operand i's region as float64, in row-major order.
func (c *Case) Values(i int) []float64 {
	out := make([]float64, 0, c.Boxes[i].Elems())
	c.each(i, func(at int) { out = append(out, c.get(i, at)) })
	return out
}

// Set overwrites operand i's region.
func (c *Case) Set(i int, value func(j int) float64) {
	j := 0
	c.each(i, func(at int) { c.put(i, at, value(j)); j++ })
}

// each visits the positions of operand i's region within its buffer.
func (c *Case) each(i int, visit func(at int)) {
	shape, box := c.Buffers[i].Shape, c.Boxes[i]
	var walk func(d, at int)
	walk = func(d, at int) {
		if d == len(shape) {
			visit(at)
			return
		}
		for e := box[d].Lo; e < box[d].Hi; e++ {
			walk(d+1, at*shape[d]+e)
		}
	}
	walk(0, 0)
}

func as[T calls.Element](b []byte) []T {
	var zero T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(zero)))
}

func (c *Case) get(i, at int) float64 {
	switch c.Buffers[i].Type {
	case dag.Uint8:
		return float64(c.Data[i][at])
	case dag.Int32:
		return float64(as[int32](c.Data[i])[at])
	case dag.Int64:
		return float64(as[int64](c.Data[i])[at])
	case dag.Float32:
		return float64(as[float32](c.Data[i])[at])
	case dag.BFloat16:
		return float64(math.Float32frombits(uint32(as[uint16](c.Data[i])[at]) << 16))
	default:
		return as[float64](c.Data[i])[at]
	}
}

func (c *Case) put(i, at int, v float64) {
	switch c.Buffers[i].Type {
	case dag.Uint8:
		c.Data[i][at] = uint8(v)
	case dag.Int32:
		as[int32](c.Data[i])[at] = int32(v)
	case dag.Int64:
		as[int64](c.Data[i])[at] = int64(v)
	case dag.Float32:
		as[float32](c.Data[i])[at] = float32(v)
	case dag.BFloat16:
		as[uint16](c.Data[i])[at] = toBFloat16(v)
	default:
		as[float64](c.Data[i])[at] = v
	}
}

// Poison fills operand i's region with 0xff bytes, which are NaN in both float types.
func (c *Case) Poison(i int) {
	size := int(c.Buffers[i].Type.SizeBytes())
	c.each(i, func(at int) {
		for b := range size {
			c.Data[i][at*size+b] = 0xff
		}
	})
}

// Written lists the operands that a call changes.
func (c *Case) Written() []int {
	var out []int
	for i, o := range c.Spec.Operands {
		if o.Mode.Writes() {
			out = append(out, i)
		}
	}
	return out
}

// SameBytes compares operand i of two cases bit for bit, foreign elements too.
func (c *Case) SameBytes(d *Case, i int) bool { return slices.Equal(c.Data[i], d.Data[i]) }

// SameOutside compares operand i of two cases bit for bit outside its region.
func (c *Case) SameOutside(d *Case, i int) bool {
	a, b := c.Clone(), d.Clone()
	a.Poison(i)
	b.Poison(i)
	return a.SameBytes(b, i)
}

// Fill gives every element of every buffer a value, foreign ones included: reals from -1 to 1,
// and for the other kinds the values that the operation allows.
func (c *Case) Fill(rng *rand.Rand) {
	for i := range c.Buffers {
		value := c.filler(i, rng)
		for at := range c.Buffers[i].Elems() {
			c.put(i, int(at), value())
		}
		if c.Kernel.Operands[i].Name == "hyper" { // learning rate, step, and factor
			c.Set(i, func(j int) float64 { return []float64{0.1, 3, 0.75}[j] })
		}
	}
}
