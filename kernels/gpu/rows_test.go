package gpu

import (
	"math/rand/v2"
	"testing"

	"dahl/dag"
	"dahl/kernels/calls"
	"dahl/kernels/offload"
)

// TestElementwiseVisitsEachElementOnce decodes groups as cuda/rows.h does, over random
// boxes of up to seven dimensions in buffers of unlike margins and types. Every element of
// the call is visited once, in all operands together, within its row, and groups that are
// moved in vectors begin at multiples of these.
func TestElementwiseVisitsEachElementOnce(t *testing.T) {
	rng := rand.New(rand.NewPCG(41, 43))
	extents := []int{1, 2, 3, 4, 5, 8, 12}
	for range 400 {
		shape := make([]int, 1+rng.IntN(7))
		for d := range shape {
			shape[d] = extents[rng.IntN(len(extents)-3*(len(shape)/4))]
		}
		keep := rng.IntN(2)
		var args []*calls.DeviceArg
		for i, typ := range []dag.DType{dag.Float32, dag.Uint8, dag.Float64} {
			args = append(args, boxIn(typ, shape, []int{0, 0, 4, 1}[rng.IntN(4)], uint64(i+1)<<40))
		}
		// What a call visits, by the element of its first operand.
		visited := map[uint64]bool{}
		where := map[uint64][3]uint64{}
		eachElement(shape, func(i []int) {
			where[addressAt(args[0], i)] = [3]uint64{addressAt(args[0], i), addressAt(args[1], i), addressAt(args[2], i)}
		})
		launches := elementwise(args, keep, func(r rowsParams, o []stridedParams) offload.Launch {
			visitGroups(t, args, r, o, func(a [3]uint64) {
				if visited[a[0]] || where[a[0]] != a {
					t.Fatalf("shape %v: addresses %x are visited twice or are no element of the call", shape, a)
				}
				visited[a[0]] = true
			})
			return offload.Launch{}
		})
		if len(visited) != len(where) || len(launches) == 0 {
			t.Fatalf("shape %v: %d of %d elements visited in %d launches", shape, len(visited), len(where), len(launches))
		}
	}
}

// boxIn is a box in the middle of a buffer with a margin.
func boxIn(typ dag.DType, shape []int, margin int, base uint64) *calls.DeviceArg {
	buf := dag.Buffer{Type: typ}
	var box dag.Box
	for _, e := range shape {
		buf.Shape = append(buf.Shape, e+2*margin)
		box = append(box, dag.Range{Lo: margin, Hi: margin + e})
	}
	a := calls.BindDevice(base, &buf, box, dag.Read)
	return &a
}

// addressAt is the address of an element.
func addressAt(a *calls.DeviceArg, index []int) uint64 {
	at := 0
	for d, i := range index {
		at += i * a.Stride[d]
	}
	return a.Addr + uint64(int64(at)*a.Type.SizeBytes())
}

func eachElement(shape []int, visit func([]int)) {
	index := make([]int, len(shape))
	var walk func(d int)
	walk = func(d int) {
		if d == len(shape) {
			visit(index)
			return
		}
		for index[d] = range shape[d] {
			walk(d + 1)
		}
	}
	walk(0)
}

// visitGroups visits the addresses of the elements of every group of a launch.
func visitGroups(t *testing.T, args []*calls.DeviceArg, r rowsParams, o []stridedParams, visit func([3]uint64)) {
	split := func(x int, by cudaDivision) (int, int) { return x / int(by.divisor), x % int(by.divisor) }
	for g := range int(r.Total) {
		row, group := split(g, r.Groups)
		outer, row2 := split(row, r.Extent2)
		row0, row1 := split(outer, r.Extent1)
		first := [3]uint64{}
		for i, s := range o {
			at := s.Stride[0]*int64(row0) + s.Stride[1]*int64(row1) + s.Stride[2]*int64(row2) + int64(group*cudaGroup)
			first[i] = s.First + uint64(at*args[i].Type.SizeBytes())
		}
		count := min(cudaGroup, int(r.Columns)-group*cudaGroup)
		for i := range o {
			if vector := uint64(min(16, cudaGroup*args[i].Type.SizeBytes())); r.Aligned != 0 && count == cudaGroup && first[i]%vector != 0 {
				t.Fatalf("a group at %x is moved in vectors of %d bytes", first[i], vector)
			}
		}
		for e := range count {
			a := first
			for i := range o {
				a[i] += uint64(int64(e) * args[i].Type.SizeBytes())
			}
			visit(a)
		}
	}
}

// TestTogether: dimensions are joined where no operand has a gap, by hand.
func TestTogether(t *testing.T) {
	whole, cut := boxIn(dag.Float32, []int{2, 3, 5, 7}, 0, 0), boxIn(dag.Float32, []int{2, 3, 5, 7}, 1, 0)
	column := boxIn(dag.Float32, []int{5, 1}, 1, 0) // in rows of three
	for _, c := range []struct {
		args   []*calls.DeviceArg
		keep   int
		extent []int
	}{
		{[]*calls.DeviceArg{whole, whole}, 0, []int{210}},
		{[]*calls.DeviceArg{whole, whole}, 1, []int{2, 105}},
		{[]*calls.DeviceArg{whole, cut}, 0, []int{2, 3, 5, 7}},
		{[]*calls.DeviceArg{column, column}, 0, []int{5, 1}},
		{[]*calls.DeviceArg{boxIn(dag.Float32, []int{1, 1}, 0, 0)}, 0, []int{1}},
		{[]*calls.DeviceArg{boxIn(dag.Float32, []int{1, 3}, 1, 0)}, 1, []int{1, 3}},
	} {
		a := mergedAxes(c.args, c.keep)
		if len(a.extent) != len(c.extent) {
			t.Errorf("%v from dimension %d on: %v, want %v", c.args[0].Shape, c.keep, a.extent, c.extent)
			continue
		}
		for d := range c.extent {
			if a.extent[d] != c.extent[d] {
				t.Errorf("%v from dimension %d on: %v, want %v", c.args[0].Shape, c.keep, a.extent, c.extent)
			}
		}
	}
}
