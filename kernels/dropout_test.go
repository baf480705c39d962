package kernels

import (
	"slices"
	"testing"
	"unsafe"

	"dahl/dag"
	"dahl/kernels/calls"
)

// TestDropoutOfSequences: a sequence is dropped as an image of one column.
func TestDropoutOfSequences(t *testing.T) {
	const samples, positions, features = 2, 7, 5
	drop := func(shape ...int) []float32 {
		x, y := slices.Repeat([]float32{1}, samples*positions*features), make([]float32, samples*positions*features)
		keys := []int64{0x1234, 0x5678}
		bind := func(p unsafe.Pointer, kind dag.DType, mode dag.Mode, shape ...int) calls.Arg {
			return calls.Bind(p, &dag.Buffer{Shape: shape, Type: kind}, nil, mode)
		}
		dropoutRef[float32](&calls.Call{Params: []float64{0.25, 1}, Args: []calls.Arg{
			bind(unsafe.Pointer(&y[0]), dag.Float32, dag.Write, shape...), bind(unsafe.Pointer(&x[0]), dag.Float32, dag.Read, shape...),
			bind(unsafe.Pointer(&keys[0]), dag.Int64, dag.Read, samples),
		}})
		return y
	}
	sequence, image := drop(samples, positions, features), drop(samples, positions, 1, features)
	if !slices.Equal(sequence, image) || !slices.Contains(sequence, 0) {
		t.Errorf("sequence %v, image %v", sequence, image)
	}
}

// TestPhilox compares the generator with the known answers that its authors publish with Random123.
func TestPhilox(t *testing.T) {
	for _, c := range []struct {
		key           uint64
		counter, want [4]uint32
	}{
		{0, [4]uint32{}, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{^uint64(0), [4]uint32{^uint32(0), ^uint32(0), ^uint32(0), ^uint32(0)}, [4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{0x299f31d0_a4093822, [4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, [4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	} {
		if got := calls.Philox(c.key, c.counter); got != c.want {
			t.Errorf("key %x, counter %x: %x, want %x", c.key, c.counter, got, c.want)
		}
	}
}
