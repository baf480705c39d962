package gpu

import (
	"dahl/kernels/calls"
	"dahl/kernels/offload"
)

// Elementwise kernels on a CUDA device see boxes as rows of contiguous elements, see cuda/rows.h.

const (
	cudaGroup   = 4       // elements that a thread takes at a time
	cudaThreads = 256     // of a block
	cudaBlocks  = 1024    // beyond these, which fill an H100, each thread takes several groups
	cudaMost    = 1 << 30 // threads of one launch, so that indices fit 32 bits
)

// rowsParams mirrors Rows of cuda/rows.h.
type rowsParams struct {
	Groups, Extent1, Extent2 cudaDivision
	Columns, Total, Aligned  int32
}

// stridedParams mirrors Strided of cuda/rows.h.
type stridedParams struct {
	First  uint64
	Stride [3]int64
}

// axes is the common dimensions of some operands.
type axes struct {
	extent []int
	stride [][]int // by operand
}

// mergedAxes returns the dimensions of operands with equal extents except before keep. From keep
// on, extents of 1 are left out. Dimensions that follow each other without a gap in all operands
// become one, of at most cudaMost elements. The last has stride 1.
func mergedAxes(args []*calls.DeviceArg, keep int) axes {
	a := axes{stride: make([][]int, len(args))}
	last := func() int { return len(a.extent) - 1 }
	for d, e := range args[0].Shape {
		if d >= keep && e == 1 {
			continue
		}
		fits := last() >= keep && a.extent[last()]*e <= cudaMost
		for i, arg := range args {
			fits = fits && a.stride[i][last()] == e*arg.Stride[d]
		}
		if fits {
			a.extent[last()] *= e
		} else {
			a.extent = append(a.extent, e)
		}
		for i, arg := range args {
			if !fits {
				a.stride[i] = append(a.stride[i], 0)
			}
			a.stride[i][last()] = arg.Stride[d]
		}
	}
	contiguous := last() >= keep
	for i := range args {
		contiguous = contiguous && a.stride[i][last()] == 1
	}
	if !contiguous {
		a.extent = append(a.extent, 1)
		for i := range a.stride {
			a.stride[i] = append(a.stride[i], 1)
		}
	}
	return a
}

// elementwise returns the launches of a kernel over operands with equal extents except in the
// dimensions before keep, which are 0 or 1. That is one launch, or one for each index of
// dimensions beyond a launch's number or length.
func elementwise(args []*calls.DeviceArg, keep int, launch func(rowsParams, []stridedParams) offload.Launch) []offload.Launch {
	first := make([]uint64, len(args))
	for i, a := range args {
		first[i] = a.Addr
	}
	return rowLaunches(args, mergedAxes(args, keep), keep, first, launch)
}

func rowLaunches(args []*calls.DeviceArg, a axes, keep int, first []uint64, launch func(rowsParams, []stridedParams) offload.Launch) []offload.Launch {
	rank := len(a.extent)
	perRow := (a.extent[rank-1] + cudaGroup - 1) / cudaGroup
	groups := perRow
	for _, e := range a.extent[:rank-1] {
		groups *= e
	}
	if rank > 4 || groups > cudaMost && rank-1 > keep {
		return splitRows(args, a, keep, first, launch)
	}
	r := rowsParams{Columns: int32(a.extent[rank-1]), Total: int32(groups), Aligned: 1}
	extent := [3]int{1, 1, 1}
	operands := make([]stridedParams, len(args))
	at := 3 - (rank - 1) // outer dimensions are the last of three, but for a kept one
	for d := range rank - 1 {
		to := at + d
		if d < keep {
			to = d
		}
		extent[to] = a.extent[d]
		for i := range args {
			operands[i].Stride[to] = int64(a.stride[i][d])
			if a.stride[i][d]%cudaGroup != 0 {
				r.Aligned = 0
			}
		}
	}
	for i, arg := range args {
		operands[i].First = first[i]
		// Load 16 bytes at a time, or four elements if they are fewer bytes.
		if unit := min(16, cudaGroup*arg.Type.SizeBytes()); first[i]%uint64(unit) != 0 {
			r.Aligned = 0
		}
	}
	r.Groups, r.Extent1, r.Extent2 = divideBy(perRow), divideBy(extent[1]), divideBy(extent[2])
	l := launch(r, operands)
	l.Block = [3]uint32{cudaThreads, 1, 1}
	l.Grid = [3]uint32{uint32(gridOf(groups)), 1, 1}
	return []offload.Launch{l}
}

// gridOf is the number of blocks for some groups of elements.
func gridOf(groups int) int { return min(cudaBlocks, (groups+cudaThreads-1)/cudaThreads) }

// splitRows is one launch for each index of the first dimension that need not be kept.
func splitRows(args []*calls.DeviceArg, a axes, keep int, first []uint64, launch func(rowsParams, []stridedParams) offload.Launch) []offload.Launch {
	inner := axes{extent: without(a.extent, keep), stride: make([][]int, len(args))}
	for i := range args {
		inner.stride[i] = without(a.stride[i], keep)
	}
	var all []offload.Launch
	for e := range a.extent[keep] {
		at := make([]uint64, len(args))
		for i, arg := range args {
			at[i] = first[i] + uint64(int64(e*a.stride[i][keep])*arg.Type.SizeBytes())
		}
		all = append(all, rowLaunches(args, inner, keep, at, launch)...)
	}
	return all
}

func without(s []int, at int) []int {
	return append(append([]int(nil), s[:at]...), s[at+1:]...)
}
