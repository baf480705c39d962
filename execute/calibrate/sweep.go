package calibrate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"dahl/dag"
	"dahl/kernels"
)

// sweepExtents are the extents of one call by the names of the operation's loops, and "h" and "w"
// for the rows and columns under windows. "..." is a single further extent.
type sweepExtents map[string]int

// sweepGrids are the grids of sizes for families of operations: sequences, windows over images,
// matrices, and the rest. A family is recognised by an extent.
var sweepGrids = []struct {
	has  []string // any of these
	grid func() []sweepExtents
}{
	{[]string{"t"}, sequenceGrid}, // in which h counts heads
	{[]string{"h", "j"}, imageGrid},
	{[]string{"f"}, matrixGrid},
	{nil, vectorGrid},
}

// imageGrid has convolutions with equal input and output sizes, pools that halve the image, and
// dense layers over the whole image.
func imageGrid() []sweepExtents {
	var grid []sweepExtents
	for _, size := range []struct{ c, f, h int }{{1, 8, 28}, {3, 32, 32}, {16, 16, 28}, {32, 32, 16}, {64, 64, 16}, {128, 128, 8}} {
		for _, n := range []int{1, 8} {
			for _, k := range []int{3, 5} {
				grid = append(grid, sweepExtents{"n": n, "N": 2048, "c": size.c, "f": size.f, "h": size.h, "w": size.h, "i": k, "j": k, "oh": size.h, "ow": size.h, "ph": size.h / 2, "pw": size.h / 2})
			}
		}
	}
	return grid
}

func matrixGrid() []sweepExtents {
	var grid []sweepExtents
	for _, n := range []int{1, 8, 64} {
		for _, c := range []int{64, 512, 4096} {
			for _, f := range []int{10, 128, 512} {
				grid = append(grid, sweepExtents{"n": n, "c": c, "f": f})
			}
		}
	}
	return grid
}

// sequenceGrid has sequences of one head, whose positions see those before them.
func sequenceGrid() []sweepExtents {
	var grid []sweepExtents
	for _, n := range []int{1, 8} {
		for _, t := range []int{64, 256} {
			for _, d := range []int{32, 64} {
				grid = append(grid, sweepExtents{"n": n, "t": t, "d": d, "e": d, "g": 1, "h": 1})
			}
		}
	}
	return grid
}

func vectorGrid() []sweepExtents {
	var grid []sweepExtents
	for _, n := range []int{8, 64, 256} {
		for _, rest := range []int{10, 1 << 8, 1 << 12} {
			grid = append(grid, sweepExtents{"n": n, "N": 2048, "c": rest, "...": rest, "hyper": 2})
		}
	}
	return grid
}

// Sweep measures every operation over its grid, without a network.
func Sweep(ctx context.Context, t dag.DType, o Options) (*Result, error) {
	g, err := sweepGraph(t)
	if err != nil {
		return nil, err
	}
	return Run(ctx, []*dag.Graph{g}, o)
}

// sweepGraph has a task for every operation and size, each with buffers of its own.
func sweepGraph(t dag.DType) (*dag.Graph, error) {
	b := dag.NewBuilder("sweep")
	for _, k := range kernels.Kernels() {
		if k.Host {
			continue
		}
		indices, err := k.Subscripts()
		if err != nil {
			return nil, fmt.Errorf("sweep %s: %w", k.Op, err)
		}
		var names []string // of the extents that the operation uses
		for _, operand := range indices {
			for i := range operand {
				names = append(names, sweepName(&operand[i]))
			}
		}
		slices.Sort(names)
		names = slices.Compact(names)
		for _, e := range sweepGrid(names) {
			var sizes []string
			for _, n := range names {
				sizes = append(sizes, fmt.Sprint(n, e[n]))
			}
			name := k.Op + "/" + strings.Join(sizes, " ")
			if _, ok := b.TaskNamed(name); ok {
				continue
			}
			if err := addSwept(b, &k, indices, e, t, name); err != nil {
				return nil, fmt.Errorf("sweep %s: %w", k.Op, err)
			}
		}
	}
	return b.Build()
}

// sweepGrid is the first grid with one of the extents.
func sweepGrid(names []string) []sweepExtents {
	for _, g := range sweepGrids {
		if g.has == nil || slices.ContainsFunc(g.has, func(n string) bool { return slices.Contains(names, n) }) {
			return g.grid()
		}
	}
	return nil
}

// addSwept adds one task and its buffers.
func addSwept(b *dag.Builder, k *kernels.Kernel, indices [][]kernels.Subscript, e sweepExtents, t dag.DType, name string) error {
	// A pool alone sees the image as it is, one behind a convolution sees its output;
	// either way it halves the size.
	pools := slices.Contains(k.Params, "height")
	if pools {
		e = maps.Clone(e)
		e["oh"], e["ow"] = e["h"]/2, e["w"]/2
	}
	task := dag.Task{Name: name, Op: k.Op, Type: t}
	for _, p := range k.Params {
		known, _ := kernels.ParamByName(p)
		v := known.Typical
		switch {
		case !pools && (p == "top" || p == "left"): // paddings that keep the size
			v = float64(e["i"] / 2)
		case pools && p == "stride":
			v = 2
		case p == "window":
			v = float64(e["t"])
		case p == "past":
			v = float64(e["t"] - 1)
		}
		task.Params = append(task.Params, dag.Param{Name: p, Value: v})
	}
	for i := range k.Operands {
		o := &k.Operands[i]
		buffer := b.Buffer(dag.Buffer{Name: fmt.Sprintf("%s.%s", name, o.Name), Shape: e.shape(indices[i]), Type: o.Kind.DType(t), Role: dag.Workspace})
		task.Accesses = append(task.Accesses, dag.Access{Region: dag.Region{Buffer: buffer}, Mode: o.Modes[0]})
	}
	kernels.Add(b, task)
	return b.Err()
}

// sweepName is the name of an index in sweepExtents.
func sweepName(x *kernels.Subscript) string {
	switch {
	case x.Offset == "top":
		return "h"
	case x.Offset == "left":
		return "w"
	case len(x.Terms) > 0:
		return x.Terms[0].Loop
	}
	return x.Text
}

// otherExtent is the extent of loops that no grid names.
const otherExtent = 2

// shape looks the extents up; a number stands for itself.
func (e sweepExtents) shape(indices []kernels.Subscript) []int {
	var shape []int
	for i := range indices {
		name := sweepName(&indices[i])
		n, ok := e[name]
		if _, err := fmt.Sscan(name, &n); err != nil && !ok {
			n = otherExtent
		}
		shape = append(shape, n)
	}
	return shape
}
