package kernels_test

import (
	"maps"
	"slices"
	"testing"

	"dahl/kernels"
	"dahl/kernels/calls"
)

// TestNamesOfCombinations: graphs, platform files and plans of any time name these combinations of operations with attributes.
// The table has all of them and no others, and says of each which operation it is.
func TestNamesOfCombinations(t *testing.T) {
	const mapped, norm, pool, relu, moments, sgd, noBias, function, kept, sum = calls.Mapped, calls.Norm, calls.Pool, calls.ReLU, calls.Moments, calls.SGD, calls.NoBias, calls.Function, calls.Kept, calls.Sum
	type combination struct {
		op   string
		with calls.Attributes
	}
	names := map[string]combination{
		"conv2d.nhwc": {"conv2d.nhwc", 0}, "conv2d.nhwc.pool": {"conv2d.nhwc", pool}, "conv2d.nhwc.moments": {"conv2d.nhwc", moments},
		"conv2d.nhwc.norm": {"conv2d.nhwc", norm}, "conv2d.nhwc.norm.moments": {"conv2d.nhwc", norm | moments},
		"conv2d.nhwc.dx": {"conv2d.nhwc.dx", 0},
		"conv2d.nhwc.dw": {"conv2d.nhwc.dw", 0}, "conv2d.nhwc.dw.sgd": {"conv2d.nhwc.dw", sgd}, "conv2d.nhwc.dw.sgd.nobias": {"conv2d.nhwc.dw", sgd | noBias},
		"conv2d.nhwc.pool.dw": {"conv2d.nhwc.dw", pool}, "conv2d.nhwc.pool.dw.sgd": {"conv2d.nhwc.dw", pool | sgd}, "conv2d.nhwc.pool.dw.sgd.nobias": {"conv2d.nhwc.dw", pool | sgd | noBias},
		"conv2d.nhwc.norm.dw": {"conv2d.nhwc.dw", norm}, "conv2d.nhwc.norm.dw.sgd": {"conv2d.nhwc.dw", norm | sgd}, "conv2d.nhwc.norm.dw.sgd.nobias": {"conv2d.nhwc.dw", norm | sgd | noBias},
		"dense": {"dense", 0}, "dense.relu": {"dense", relu}, "dense.dx": {"dense.dx", 0}, "dense.dx.relu": {"dense.dx", relu},
		"dense.function": {"dense", function}, "dense.function.kept": {"dense", function | kept}, "dense.dx.function": {"dense.dx", function},
		"layernorm": {"layernorm", 0}, "layernorm.sum": {"layernorm", sum}, "layernorm.dx": {"layernorm.dx", 0}, "layernorm.dx.sum": {"layernorm.dx", sum},
		"dense.dw": {"dense.dw", 0}, "dense.dw.sgd": {"dense.dw", sgd}, "dense.dw.sgd.nobias": {"dense.dw", sgd | noBias},
		"dense.nhwc.dw.sgd": {"dense.dw", mapped | sgd}, "dense.nhwc.dw.sgd.nobias": {"dense.dw", mapped | sgd | noBias},
	}
	operations := map[string]bool{}
	for _, c := range names {
		operations[c.op] = true
	}
	missing := maps.Clone(names)
	for _, k := range kernels.Kernels() {
		delete(missing, k.Op)
		switch c, ok := names[k.Op]; {
		case !ok && (k.Base != k.Op || k.With != 0 || operations[k.Op]):
			t.Errorf("%s: operation %s with attributes %b, which nobody knows", k.Op, k.Base, k.With)
		case ok && (k.Base != c.op || k.With != c.with || kernels.Written(c.op, c.with) != k.Op):
			t.Errorf("%s: operation %s with attributes %b, want %s with %b", k.Op, k.Base, k.With, c.op, c.with)
		}
	}
	if len(missing) > 0 {
		t.Errorf("the table lacks %v", slices.Sorted(maps.Keys(missing)))
	}
}
