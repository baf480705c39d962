package execute

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"unsafe"

	"dahl/dag"
	"dahl/kernels/calls"
)

// finiteProbe notes the first task, in program order, that wrote a NaN or an infinity. Its inputs were
// finite then, since their writers come before it.
type finiteProbe struct{ first atomic.Int32 } // task; math.MaxInt32: none

// FindNotFinite runs one step of a graph. It returns the first task, in program order, that
// writes a NaN or an infinity, and whether there is one. It sees the results of cpu workers only,
// so it refuses platforms of several memories. The step updates the parameters.
func (r *Runner) FindNotFinite(ctx context.Context, graph int) (task dag.TaskID, found bool, err error) {
	if r.spread {
		return 0, false, fmt.Errorf("execute program %q: what devices write is not looked through", r.prog.Name)
	}
	f := &finiteProbe{}
	f.first.Store(math.MaxInt32)
	r.probe = f
	defer func() { r.probe = nil }()
	if _, err := r.Run(ctx, graph, 1, false); err != nil {
		return 0, false, err
	}
	t := f.first.Load()
	return dag.TaskID(t), t != math.MaxInt32, nil
}

// check notes a task that has ended.
func (f *finiteProbe) check(g *dag.Graph, task int32, args []calls.Arg) {
	first := f.first.Load()
	if task >= first || allFinite(g, dag.TaskID(task), args) {
		return
	}
	for task < first && !f.first.CompareAndSwap(first, task) {
		first = f.first.Load()
	}
}

// allFinite reports whether the results of a task are finite.
func allFinite(g *dag.Graph, t dag.TaskID, args []calls.Arg) bool {
	finite := true
	for i := range args {
		dtype := g.Buffers[g.Tasks[t].Accesses[i].Buffer].Type
		if args[i].Mode == dag.Read || dtype.Arithmetic() != dag.Float32 && dtype != dag.Float64 {
			continue
		}
		eachRow(&args[i], int(dtype.SizeBytes()), func(row []byte) {
			first := unsafe.Pointer(unsafe.SliceData(row))
			switch dtype {
			case dag.Float32:
				finite = finite && finiteRow(unsafe.Slice((*float32)(first), len(row)/4))
			case dag.Float64:
				finite = finite && finiteRow(unsafe.Slice((*float64)(first), len(row)/8))
			case dag.BFloat16:
				finite = finite && !slices.ContainsFunc(unsafe.Slice((*uint16)(first), len(row)/2), func(bits uint16) bool { return bits&0x7f80 == 0x7f80 })
			}
		})
	}
	return finite
}

func finiteRow[T float32 | float64](row []T) bool {
	for _, v := range row {
		if v-v != 0 { // NaN for a NaN and for an infinity
			return false
		}
	}
	return true
}

// eachRow visits the bytes of an operand, innermost row by innermost row; size is the size of an
// element.
func eachRow(a *calls.Arg, size int, visit func(row []byte)) {
	rank := len(a.Shape)
	// The argument's first element is the start of its data, whatever the type.
	first := unsafe.Pointer(unsafe.SliceData(calls.Data[uint8](a)))
	width := size
	if rank > 0 {
		width *= a.Shape[rank-1]
	}
	var walk func(d, offset int)
	walk = func(d, offset int) {
		if d >= rank-1 {
			visit(unsafe.Slice((*byte)(unsafe.Add(first, offset*size)), width))
			return
		}
		for i := range a.Shape[d] {
			walk(d+1, offset+i*a.Stride[d])
		}
	}
	walk(0, 0)
}
