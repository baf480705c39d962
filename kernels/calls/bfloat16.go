package calls

import (
	"math"
	"slices"
	"unsafe"

	"dahl/dag"
)

// Widened is a call in bfloat16 as one in float32.
func Widened(s *Spec) *Spec {
	wide := *s
	wide.Type, wide.Operands = s.Type.Arithmetic(), slices.Clone(s.Operands)
	for i := range wide.Operands {
		wide.Operands[i].Type = wide.Operands[i].Type.Arithmetic()
	}
	return &wide
}

// WideningBytes is the workspace for float32 copies of the operands of a call in bfloat16.
func WideningBytes(s *Spec) (bytes int64) {
	for i, o := range s.Operands {
		if o.Type == dag.BFloat16 {
			bytes += wideBytes(int(s.Volume(i)))
		}
	}
	return bytes
}

// wideBytes is the room of a copy.
func wideBytes(elements int) int64 {
	return (4*int64(elements) + WorkAlignment - 1) &^ (WorkAlignment - 1)
}

// Widen puts float32 copies of the operands in bfloat16 in their place, at the beginning of the workspace. The rest of the workspace is the call's.
func (c *Call) Widen() {
	c.narrow = append(c.narrow[:0], c.Args...)
	if c.wide == nil {
		c.wide = make([]int, 0, 8*len(c.Args))
	}
	strides := c.wide[:0]
	for i := range c.Args {
		a := &c.Args[i]
		if a.Type != dag.BFloat16 {
			continue
		}
		first, step := len(strides), a.Volume()
		elems, _ := Scratch[float32](c.Work, step)
		c.Work = c.Work[wideBytes(step):]
		for _, e := range a.Shape {
			step /= e
			strides = append(strides, step)
		}
		wide := Arg{Mode: a.Mode, Type: dag.Float32, Shape: a.Shape, Stride: strides[first:len(strides):len(strides)], First: unsafe.Pointer(unsafe.SliceData(elems)), Elems: len(elems)}
		if a.Mode != dag.Write {
			EachRun(&wide, a, a, func(to []float32, from, _ []uint16) {
				for j, bits := range from {
					to[j] = FromBFloat16(bits)
				}
			})
		}
		*a = wide
	}
}

// Narrow ends what Widen began: results are rounded to bfloat16, and the call has its operands and the workspace again.
func (c *Call) Narrow(work []byte) {
	for i := range c.Args {
		a := &c.narrow[i]
		if a.Type == dag.BFloat16 && a.Mode != dag.Read {
			EachRun(a, &c.Args[i], &c.Args[i], func(to []uint16, from, _ []float32) {
				for j, v := range from {
					to[j] = ToBFloat16(v)
				}
			})
		}
	}
	copy(c.Args, c.narrow)
	c.Work = work
}

// Widened is the call with room in its workspace in the place of operands in bfloat16. The rest of the workspace is the call's.
func (c *DeviceCall) Widened() *DeviceCall {
	wide := *c
	wide.Type, wide.Args = dag.Float32, slices.Clone(c.Args)
	for i := range wide.Args {
		a := &wide.Args[i]
		if a.Type != dag.BFloat16 {
			continue
		}
		*a = BindDevice(wide.Work, &dag.Buffer{Type: dag.Float32, Shape: a.Shape}, nil, a.Mode)
		wide.Work += uint64(a.PackedBytes())
	}
	return &wide
}

// FromBFloat16 is the number of a bfloat16: the upper half of a float32.
func FromBFloat16(bits uint16) float32 { return math.Float32frombits(uint32(bits) << 16) }

// ToBFloat16 rounds to the nearest bfloat16, and between two to the even one, as processors and GPUs do. Numbers beyond the largest become infinite.
func ToBFloat16(v float32) uint16 {
	bits := math.Float32bits(v)
	if v != v {
		return uint16(bits>>16) | 0x40 // which stays no number
	}
	return uint16((bits + 0x7fff + bits>>16&1) >> 16)
}
