package kernels

import (
	"math/rand/v2"
	"slices"
	"unsafe"

	"dahl/dag"
)

// sample is a call with its data: every operand is the middle of a larger buffer
// when cut, so that regions have strides and the elements around them can be
// checked to be untouched.
type sample struct {
	spec    Spec
	kernel  *Kernel
	boxes   []dag.Box
	buffers []dag.Buffer
	data    [][]byte
}

// newSample builds a call of an operation. shapes and modes are by operand; margin
// is the number of foreign elements before and after each dimension.
func newSample(k *Kernel, real dag.DType, shapes [][]int, modes []dag.Mode, params dag.Params, margin int) *sample {
	s := &sample{kernel: k, spec: Spec{Op: k.Op, Type: real, Params: params}}
	for i, shape := range shapes {
		t := k.Operands[i].Kind.DType(real)
		buf := dag.Buffer{Name: k.Operands[i].Name, Type: t}
		box := dag.Box{}
		for _, e := range shape {
			buf.Shape = append(buf.Shape, e+2*margin)
			box = append(box, dag.Range{Lo: margin, Hi: margin + e})
		}
		s.spec.Operands = append(s.spec.Operands, OperandSpec{Type: t, Mode: modes[i], Shape: shape})
		s.buffers, s.boxes = append(s.buffers, buf), append(s.boxes, box)
		s.data = append(s.data, aligned(buf.Bytes()))
	}
	return s
}

// aligned returns n bytes at a multiple of 64.
func aligned(n int64) []byte {
	raw := make([]byte, n+64)
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(raw))) & 63
	return raw[skip:][:n:n]
}

// call binds the data; v decides the size of the workspace, which is full of NaN.
func (s *sample) call(v *Variant) *Call {
	c := &Call{}
	for i := range s.buffers {
		c.Args = append(c.Args, Bind(unsafe.Pointer(unsafe.SliceData(s.data[i])), &s.buffers[i], s.boxes[i], s.spec.Operands[i].Mode))
	}
	for _, name := range s.kernel.Params {
		c.Params = append(c.Params, s.spec.Param(name))
	}
	if v.WorkspaceBytes != nil {
		c.Work = aligned(v.WorkspaceBytes(&s.spec))
		for i := range c.Work {
			c.Work[i] = 0xff
		}
	}
	return c
}

// clone copies the data, so that another variant starts from the same.
func (s *sample) clone() *sample {
	t := *s
	t.data = nil
	for _, d := range s.data {
		e := aligned(int64(len(d)))
		copy(e, d)
		t.data = append(t.data, e)
	}
	return &t
}

// values returns operand i's region as float64, in row-major order.
func (s *sample) values(i int) []float64 {
	var out []float64
	s.each(i, func(at int) { out = append(out, s.get(i, at)) })
	return out
}

// set overwrites operand i's region.
func (s *sample) set(i int, value func(j int) float64) {
	j := 0
	s.each(i, func(at int) { s.put(i, at, value(j)); j++ })
}

// each visits the positions of operand i's region within its buffer.
func (s *sample) each(i int, visit func(at int)) {
	shape, box := s.buffers[i].Shape, s.boxes[i]
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

func as[T Element](b []byte) []T {
	var zero T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(zero)))
}

func (s *sample) get(i, at int) float64 {
	switch s.buffers[i].Type {
	case dag.Uint8:
		return float64(s.data[i][at])
	case dag.Int32:
		return float64(as[int32](s.data[i])[at])
	case dag.Float32:
		return float64(as[float32](s.data[i])[at])
	default:
		return as[float64](s.data[i])[at]
	}
}

func (s *sample) put(i, at int, v float64) {
	switch s.buffers[i].Type {
	case dag.Uint8:
		s.data[i][at] = uint8(v)
	case dag.Int32:
		as[int32](s.data[i])[at] = int32(v)
	case dag.Float32:
		as[float32](s.data[i])[at] = float32(v)
	default:
		as[float64](s.data[i])[at] = v
	}
}

// fill gives every element of every buffer a value, foreign ones included: reals
// from -1 to 1, and for the other kinds what the operation allows.
func (s *sample) fill(rng *rand.Rand) {
	for i := range s.buffers {
		limit := s.indexLimit(i)
		for at := range s.buffers[i].Elems() {
			v := 2*rng.Float64() - 1
			switch {
			case exactSums[s.kernel.Op] && s.kernel.Operands[i].Kind == Real:
				v = float64(rng.IntN(9) - 4)
			case s.buffers[i].Type == dag.Uint8 || s.buffers[i].Type == dag.Int32:
				if v = float64(rng.IntN(limit)); s.passesNothing(i) && rng.IntN(4) == 0 {
					v = noMaximum
				}
			case s.kernel.Operands[i].Kind == Scalar:
				v = []float64{0.1, 3}[rng.IntN(2)]
			case nonNegative[s.kernel.Op+" "+s.kernel.Operands[i].Name]:
				v = rng.Float64() + 0.5
			}
			s.put(i, int(at), v)
		}
		if s.kernel.Operands[i].Kind == Scalar { // learning rate and step
			s.set(i, func(j int) float64 { return []float64{0.1, 3}[j] })
		}
	}
}

// passesNothing reports whether operand i holds positions in pooling windows, of which
// [noMaximum] stands for none.
func (s *sample) passesNothing(i int) bool {
	return (s.kernel.Op == "maxpool.nhwc.dx" || s.kernel.Op == "conv2d.nhwc.pool.dw") && s.kernel.Operands[i].Name == "index"
}

// nonNegative are the operands that hold sums of exponentials or of squares.
var nonNegative = map[string]bool{"xent s": true, "softmax_xent.dx s": true, "softmax_xent.dx e": true, "adam v": true}

// exactSums are the operations that compare sums. Their inputs are small integers, so
// that the sums are exact in any order, all variants find the same maxima, and many
// of these are equal or zero.
var exactSums = map[string]bool{"conv2d.nhwc.pool": true, "conv2d.nhwc.pool.dw": true}

// indexLimit is one more than the largest value of an integer operand.
func (s *sample) indexLimit(i int) int {
	shape := func(name string) []int {
		for j, o := range s.kernel.Operands {
			if o.Name == name {
				return s.spec.Operands[j].Shape
			}
		}
		panic("kernels: no operand " + name)
	}
	switch s.kernel.Op + " " + s.kernel.Operands[i].Name {
	case "load index", "load.nhwc index":
		return shape("images")[0]
	case "load.labels index":
		return shape("labels")[0]
	case "maxpool.dx index", "maxpool.nhwc.dx index", "conv2d.nhwc.pool.dw index":
		size := int(s.spec.Param("size"))
		return size * size
	case "softmax_xent y", "softmax_xent.eval y", "xent y":
		return shape("z")[1]
	case "softmax_xent.dx y":
		return shape("e")[1]
	case "relu.dx mask", "count flags":
		return 2
	}
	return 251
}

// written lists the operands that a call changes.
func (s *sample) written() []int {
	var out []int
	for i, o := range s.spec.Operands {
		if o.Mode.Writes() {
			out = append(out, i)
		}
	}
	return out
}

// sameBytes compares operand i of two samples bit for bit, foreign elements too.
func (s *sample) sameBytes(t *sample, i int) bool { return slices.Equal(s.data[i], t.data[i]) }
