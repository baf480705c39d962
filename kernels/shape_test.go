package kernels_test

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/kernels"
	"dahl/kernels/calls"
	"dahl/kernels/kerneltest"
	"dahl/kernels/simd"
	"dahl/must"
)

// TestShapeErrors checks that a wrong call is refused with a message that names the
// operation, the operands and the extents.
func TestShapeErrors(t *testing.T) {
	for _, c := range []struct {
		op     string
		shapes [][]int
		params dag.Params
		want   string
	}{
		{"conv3d", nil, nil, `unknown operation "conv3d"`},
		{"conv2d.nhwc", [][]int{{2, 6, 7, 5}}, kerneltest.ConvReLUParams(0, 1, 0), "conv2d.nhwc: 1 operands, want y, x, w, [b]"},
		{"conv2d.nhwc", [][]int{{2, 6, 7, 5}, {2, 8, 9, 3}, {3, 3, 7, 5}}, kerneltest.ConvReLUParams(0, 1, 0), "extent c is 3 in x[3] and 7 in w[2]"},
		{"conv2d.nhwc", [][]int{{2, 6, 7, 5}, {2, 8, 9, 3}, {3, 3, 3, 7}}, kerneltest.ConvReLUParams(0, 1, 0), "extent f is 5 in y[3] and 7 in w[3]"},
		{"conv2d.nhwc", [][]int{{2, 6, 7, 5}, {2, 8, 9, 3}, {3, 2, 3, 5}}, kerneltest.ConvReLUParams(0, 1, 0), "y[2] is 7, want at least 8: windows of 2 at stride 1 over x[2] = 9 from 0 on"},
		{"conv2d.nhwc", [][]int{{2, 6, 7, 5}, {2, 8, 9, 3}, {3, 3, 3, 5}, {3}}, kerneltest.ConvReLUParams(0, 1, 0), "extent f is 5 in y[3] and 3 in b[0]"},
		{"conv2d.nhwc", [][]int{{2, 6, 6, 5}, {2, 8, 9, 3}, {3, 3, 3, 5}}, kerneltest.ConvReLUParams(0, 1, 0), "y[2] is 6, want at least 7: windows of 3 at stride 1 over x[2] = 9 from 0 on"},
		{"conv2d.nhwc", [][]int{{2, 6, 7, 5}, {2, 8, 9, 3}, {3, 3, 3, 5}}, kerneltest.ConvReLUParams(-1, 1, 0), "parameter top is -1, want more than -1: windows of 3 at stride 1 over x[1] = 8 from 1 on"},
		{"conv2d.nhwc", [][]int{{2, 6, 7, 5}, {2, 8, 9, 3}, {3, 3, 3, 5}}, kerneltest.ConvReLUParams(0, 0, 0), "parameter stride is 0, want an integer from 1"},
		{"conv2d.nhwc", [][]int{{2, 6, 7, 5}, {2, 8, 9, 3}, {3, 3, 3, 5}}, kerneltest.ConvReLUParams(0.5, 1, 0), "parameter top is 0.5"},
		{"conv2d.nhwc", [][]int{{2, 6, 7, 5}, {2, 8, 9, 3}, {3, 3, 3, 5}}, kerneltest.ConvReLUParams(math.NaN(), 1, 0), "parameter top is NaN"},
		{"conv2d.nhwc", [][]int{{2, 6, 7, 5}, {2, 8, 9, 3}, {3, 3, 3, 5}}, nil, "parameter stride is missing"},
		{"conv2d.nhwc", [][]int{{2, 6, 7, 5}, {2, 8, 9, 6}, {3, 3, 3, 5}}, reluOptions("groups", 2), "y[3] is 5, want a multiple of 2"},
		{"conv2d.nhwc", [][]int{{2, 6, 7, 4}, {2, 8, 9, 6}, {3, 3, 2, 4}}, reluOptions("groups", 2), "extent c is 3 in x[3] and 2 in w[2]"},
		{"conv2d.nhwc", [][]int{{2, 6, 7, 4}, {2, 8, 9, 6}, {3, 3, 3, 4}}, reluOptions("groups", 0), "parameter groups is 0, want an integer from 1"},
		{"conv2d.nhwc", [][]int{{2, 6, 7, 4}, {2, 8, 9, 6}, {3, 3, 6, 4}}, reluOptions("dilation", 1.5), "parameter dilation is 1.5, want an integer from 1"},
		{"conv2d.nhwc", [][]int{{2, 4, 4, 5}, {2, 8, 9, 3}, {3, 3, 3, 5}}, reluOptions("dilation", 2), "y[2] is 4, want at least 5: windows of 5 at stride 1 over x[2] = 9 from 0 on"},
		{"conv2d.nhwc.dx", [][]int{{2, 8, 9, 3}, {2, 6, 6, 5}, {3, 3, 5, 3}}, kerneltest.ConvParams(0, 1), "dy[2] is 6, want at least 7: windows of 3 at stride 1 over dx[2] = 9"},
		{"conv2d.nhwc.dw", [][]int{{3, 3, 3, 5}, {2, 6, 6, 5}, {2, 8, 9, 3}}, kerneltest.ConvParams(0, 1), "dy[2] is 6, want at least 7: windows of 3 at stride 1 over x[2] = 9"},
		{"conv2d.nhwc", [][]int{{2, 6, 7, 5}, {2, 8, 9, 3}, {3, 3, 3, 5}}, kerneltest.ConvReLUParams(0, 1, 2), "parameter relu is 2, want an integer from 0 to 1"},
		{"dense", [][]int{{2, 5}, {2, 7}, {7, 5}}, nil, "extent f is 5 in y[1] and 7 in w[0]"},
		{"dense", [][]int{{2, 5}, {2, 7, 1}, {5, 7}}, nil, "operand x has shape [2 7 1], want dimensions (n c)"},
		{"relu", [][]int{{2, 3}, {2, 3}, {2, 5}}, nil, "is 3 in y[1] and 5 in x[1]"},
		{"relu", [][]int{{2, 3}, {2, 3}, {2, 3, 1}}, nil, "y"},
		{"maxpool.nhwc", [][]int{{2, 4, 4, 3}, {2, 4, 4, 3}, {2, 8, 9, 3}}, kerneltest.PoolParams(16, 2), "parameter height is 16, want an integer from 1 to 15"},
		{"maxpool.nhwc", [][]int{{2, 4, 6, 3}, {2, 4, 6, 3}, {2, 8, 9, 3}}, kerneltest.PoolParams(2, 2), "y[2] is 6, want at most 5"},
		{"maxpool.nhwc", [][]int{{2, 4, 3, 3}, {2, 4, 3, 3}, {2, 8, 9, 3}}, kerneltest.PoolParams(2, 2), "y[2] is 3, want at least 4"},
		{"maxpool.nhwc.dx", [][]int{{2, 8, 9, 3}, {2, 4, 4, 3}, {2, 4, 3, 3}}, kerneltest.PoolParams(2, 2), "extent ow is 4 in dy[2] and 3 in index[2]"},
		{"avgpool.nhwc", [][]int{{2, 4, 3, 3}, {2, 8, 9, 3}}, kerneltest.PoolParams(2, 2), "y[2] is 3, want at least 4"},
		{"softmax_xent", [][]int{{5, 7}, {5}, {5}, {5, 7}, {5}}, kerneltest.LossParams(3, 0), "parameter batch is 3, less than the 5 samples"},
		{"softmax_xent", [][]int{{5, 7}, {7}, {5}, {5, 7}, {5}}, kerneltest.LossParams(5, 0), "extent n is 5 in dz[0] and 7 in loss[0]"},
		{"mean", [][]int{{2}, {5}}, nil, "m[0] is 2, want 1"},
		{"load", [][]int{{5, 1, 28, 28}, {60, 1, 28, 27}, {5}}, dag.Params{{Name: "divisor", Value: 255}}, "is 28 in x[3] and 27 in images[3]"},
		{"load", [][]int{{5, 1, 28, 28}, {60, 28, 28}, {5}}, dag.Params{{Name: "divisor", Value: 255}}, "x and images differ in their number of dimensions"},
		{"load", [][]int{{5, 2}, {60, 2}, {5}}, dag.Params{{Name: "divisor", Value: 0}}, "parameter divisor is 0"},
		{"softmax_xent", [][]int{{5, 7}, {5}, {5}, {5, 7}, {5}}, kerneltest.LossParams(5, 1), "parameter smoothing is 1, want at least 0 and less than 1"},
		{"adam", [][]int{{5}, {5}, {2}, {5}, {5}}, kerneltest.AdamParams(0, 2), "parameter decoupled is 2, want an integer from 0 to 1"},
		{"sgd", [][]int{{5}, {5}, {2}}, kerneltest.SGDParams(0.9, 0, 0), "momentum needs the operand v"},
		{"sgd", [][]int{{5}, {5}, {2}, {5}}, kerneltest.SGDParams(0, 1, 0), "nesterov needs a momentum"},
		{"sgd", [][]int{{5}, {5}, {4}, {5}}, kerneltest.SGDParams(0, 0, 0), "hyper[0] is 4, want 2, or 3"},
		{"adam", [][]int{{5}, {5}, {1}, {5}, {5}}, kerneltest.AdamParams(0, 0), "hyper[0] is 1, want 2, or 3"},
		{"clip", [][]int{{3}, {2}, {7}}, kerneltest.ClipParams(0), "parameter max_norm is 0"},
		{"sgd", [][]int{{5}, {5}, {2}}, kerneltest.SGDParams(0, 0, -1), "parameter weight_decay is -1"},
		{"dense.dw.sgd", [][]int{{5, 7}, {2, 5}, {2, 7}, {2}, {5}}, kerneltest.SGDParams(0.9, 0, 0), "momentum needs vw and vb"},
		{"conv2d.nhwc.dw.sgd", [][]int{{5, 3, 2, 2}, {2, 6, 7, 5}, {2, 7, 8, 3}, {2}, {5}}, append(kerneltest.ConvParams(0, 1), kerneltest.SGDParams(0.9, 0, 0)...), "momentum needs vw and vb"},
		{"conv2d.nhwc.dw.sgd.nobias", [][]int{{5, 3, 2, 2}, {2, 6, 7, 5}, {2, 7, 8, 3}, {2}}, append(kerneltest.ConvParams(0, 1), kerneltest.SGDParams(0.9, 0, 0)...), "momentum needs vw ("},
		{"conv2d.nhwc.dw.sgd", [][]int{{5, 3, 2, 2}, {2, 6, 6, 5}, {2, 7, 8, 3}, {2}, {5}}, append(kerneltest.ConvParams(0, 1), kerneltest.SGDParams(0, 0, 0)...), "dy[2] is 6, want at least 7"},
		{"conv2d.nhwc.pool.dw.sgd", [][]int{{5, 3, 2, 2}, {2, 2, 3, 5}, {2, 2, 3, 5}, {2, 7, 8, 3}, {2}, {5}}, append(kerneltest.ConvPoolParams(0, 1, 2, 2), kerneltest.SGDParams(0, 0, 0)...), "dy[1] is 2, want at least 3"},
		{"conv2d.nhwc.pool.dw.sgd", [][]int{{5, 3, 2, 2}, {2, 3, 3, 5}, {2, 3, 3, 5}, {2, 7, 8, 3}, {2}, {5}}, append(kerneltest.ConvPoolParams(0, 1, 2, 2), kerneltest.SGDParams(0.5, 0, 0)...), "momentum needs vw and vb"},
		{"dense.nhwc.dw.sgd", [][]int{{5, 3, 2, 7}, {2, 5}, {2, 7, 2, 3}, {2}, {5}}, kerneltest.SGDParams(0, 0, 0), "extent h is 2 in w[2] and 7 in x[1]"},
		{"hwio", [][]int{{2, 2, 3, 5}, {5, 3, 2, 2}, {2, 2, 3, 5}}, nil, "extent f is 5 in y[3] and 3 in turned[2]"},
		{"dense.dw.sgd", [][]int{{5, 7}, {2, 5}, {2, 7}, {2}, {5}}, kerneltest.SGDParams(0, 2, 0), "nesterov is neither 0 nor 1"},
		{"dense.dw.sgd", [][]int{{5, 7}, {2, 5}, {2, 7}, {2}, {5}, {7, 5}, {5}}, kerneltest.SGDParams(0, 0, 0), "extent f is 5 in w[0] and 7 in vw[0]"},
		{"adam", [][]int{{5}, {5}, {2}, {5}, {5}}, dag.Params{{Name: "beta1", Value: 1}, {Name: "beta2", Value: 0.9}, {Name: "eps", Value: 1e-8}, {Name: "weight_decay", Value: 0}, {Name: "decoupled", Value: 0}}, "parameter beta1 is 1, want at least 0 and less than 1"},
	} {
		s := calls.Spec{Op: c.op, Type: dag.Float32, Params: c.params}
		k, _ := kernels.KernelByName(c.op)
		for i, shape := range c.shapes {
			o := &k.Operands[i]
			s.Operands = append(s.Operands, calls.OperandSpec{Type: o.Kind.DType(s.Type), Mode: o.Modes[0], Shape: shape})
		}
		switch err := kernels.Validate(&s); {
		case err == nil:
			t.Errorf("%s %v %v is accepted, want %q", c.op, c.shapes, c.params, c.want)
		case !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.op):
			t.Errorf("%s %v: %q does not say %q", c.op, c.shapes, err, c.want)
		}
	}
}

// options are the parameters of a convolution at stride 1 and one more.
func options(name string, value float64) dag.Params {
	return append(kerneltest.ConvParams(0, 1), dag.Param{Name: name, Value: value})
}

func reluOptions(name string, value float64) dag.Params {
	return append(kerneltest.ConvReLUParams(0, 1, 0), dag.Param{Name: name, Value: value})
}

// TestSumsAreComplete: what is not linear comes after all of a sum.
func TestSumsAreComplete(t *testing.T) {
	conv := [][]int{{2, 6, 7, 5}, {2, 7, 8, 3}, {2, 2, 3, 5}}
	dx := [][]int{{2, 7, 8, 3}, {2, 6, 7, 5}, {2, 2, 5, 3}, {2, 7, 8, 3}}
	for _, c := range []struct {
		op     string
		shapes [][]int
		params dag.Params
		want   string // "": may be added to
	}{
		{"conv2d.nhwc", conv, kerneltest.ConvReLUParams(0, 1, 1), "y is added to, so that relu must be 0"},
		{"conv2d.nhwc", conv, kerneltest.ConvReLUParams(0, 1, 0), ""},
		{"conv2d.nhwc.dx", dx, kerneltest.ConvParams(0, 1), "dx is added to, so that x"},
		{"conv2d.nhwc.dx", dx[:3], kerneltest.ConvParams(0, 1), ""},
		{"dense.relu", [][]int{{2, 5}, {2, 7}, {5, 7}}, nil, "operand y has mode readwrite, want one of [write]"},
	} {
		s := specOf(t, c.op, c.shapes, c.params)
		s.Operands[0].Mode = dag.ReadWrite
		if err := kernels.Validate(s); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.op, err, c.want)
		}
	}
}

// TestAddReportsTask checks that a graph's builder gets type and mode mistakes with
// the name of the task, and that a right task gets key and work.
func TestAddReportsTask(t *testing.T) {
	build := func(label dag.DType, mode dag.Mode) (*dag.Builder, error) {
		b := dag.NewBuilder("g")
		y := b.Buffer(dag.Buffer{Name: "y", Shape: []int{3}, Type: label})
		from := b.Buffer(dag.Buffer{Name: "labels", Shape: []int{7}, Type: dag.Int32})
		index := b.Buffer(dag.Buffer{Name: "index", Shape: []int{3}, Type: dag.Int32})
		kernels.Add(b, dag.Task{Name: "pick", Op: "load.labels", Type: dag.Float32, Accesses: []dag.Access{
			{Region: dag.Region{Buffer: y}, Mode: mode}, {Region: dag.Region{Buffer: from}, Mode: dag.Read}, {Region: dag.Region{Buffer: index}, Mode: dag.Read}}})
		return b, b.Err()
	}
	for _, c := range []struct {
		label dag.DType
		mode  dag.Mode
		want  string
	}{
		{dag.Float32, dag.Write, `task "pick": load.labels: operand y is float32, want int32`},
		{dag.Int32, dag.ReadWrite, `task "pick": load.labels: operand y has mode readwrite, want one of [write]`},
	} {
		if _, err := build(c.label, c.mode); err == nil || err.Error() != c.want {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
	b := must.Get(build(dag.Int32, dag.Write))(t)
	g := must.Get(b.Build())(t)
	// 3 labels written, 3 read of the 7, 3 indices: 9·4 bytes.
	if task := &g.Tasks[0]; task.Shape != "3;7;3" || task.MovedBytes != 36 || task.Flops != 0 {
		t.Errorf("key %q, %d bytes, %g flops", task.Shape, task.MovedBytes, task.Flops)
	}
}

// TestWork compares flops and bytes with those counted by hand.
func TestWork(t *testing.T) {
	for _, c := range []struct {
		op     string
		shapes [][]int
		params dag.Params
		flops  float64
		bytes  int64
	}{
		// 2·5·6·7 outputs of 3·3·3 products and as many additions, one for the bias.
		{"conv2d.nhwc", [][]int{{2, 6, 7, 5}, {2, 8, 9, 3}, {3, 3, 3, 5}, {5}}, kerneltest.ConvReLUParams(0, 1, 0), 420 * (54 + 1), 4 * (420 + 432 + 135 + 5)},
		{"conv2d.nhwc.dx", [][]int{{2, 8, 9, 3}, {2, 6, 7, 5}, {3, 3, 5, 3}}, kerneltest.ConvParams(0, 1), 420 * 54, 4 * (432 + 420 + 135)},
		{"conv2d.nhwc.dw", [][]int{{3, 3, 3, 5}, {2, 6, 7, 5}, {2, 8, 9, 3}, {5}}, kerneltest.ConvParams(0, 1), 420 * (54 + 1), 4 * (135 + 420 + 432 + 5)},
		// 2·5 outputs of 7 products and as many additions, one for the bias.
		{"dense", [][]int{{2, 5}, {2, 7}, {5, 7}, {5}}, nil, 10 * (14 + 1), 4 * (10 + 14 + 35 + 5)},
		{"dense.dx", [][]int{{2, 7}, {2, 5}, {5, 7}}, nil, 140, 4 * (14 + 10 + 35)},
		{"dense.dw", [][]int{{5, 7}, {2, 5}, {2, 7}, {5}}, nil, 140 + 10, 4 * (35 + 10 + 14 + 5)},
		// Masks are bytes.
		{"relu", [][]int{{2, 3}, {2, 3}, {2, 3}}, nil, 6, 4*6 + 6 + 4*6},
		// 24 windows of four elements.
		{"maxpool.nhwc", [][]int{{1, 3, 4, 2}, {1, 3, 4, 2}, {1, 6, 8, 2}}, kerneltest.PoolParams(2, 2), 96, 24*5 + 96*4},
		// 15 pixels of 60 images' rows: float32 out, bytes in, 3 indices.
		{"load", [][]int{{3, 5}, {60, 5}, {3}}, dag.Params{{Name: "divisor", Value: 255}}, 15, 15*5 + 12},
		// w and v are read and written, g is read, hyper is two float64.
		{"sgd", [][]int{{7}, {7}, {2}, {7}}, kerneltest.SGDParams(0.9, 0, 0), 7 * 4, 4*7*5 + 16},
		// As dense.dw, 40 steps of four operations, four operands twice and no gradient.
		{"dense.dw.sgd", [][]int{{5, 7}, {2, 5}, {2, 7}, {2}, {5}, {5, 7}, {5}}, kerneltest.SGDParams(0.9, 0, 0), 140 + 10 + 160, 4*(2*35+2*5+10+14+2*35+2*5) + 16},
		// 2·5·6·7 elements of dy with 3·2·2 products each and one sum of the bias; 60 and 5 steps.
		{"conv2d.nhwc.dw.sgd", [][]int{{5, 3, 2, 2}, {2, 6, 7, 5}, {2, 7, 8, 3}, {2}, {5}, {5, 3, 2, 2}, {5}},
			append(kerneltest.ConvParams(0, 1), kerneltest.SGDParams(0.9, 0, 0)...),
			420*24 + 420 + 65*4, 4*(2*60+2*5+420+336+2*60+2*5) + 16},
		{"conv2d.nhwc.dw.sgd.nobias", [][]int{{5, 3, 2, 2}, {2, 6, 7, 5}, {2, 7, 8, 3}, {2}, {5, 3, 2, 2}},
			append(kerneltest.ConvParams(0, 1), kerneltest.SGDParams(0.9, 0, 0)...),
			420*24 + 60*4, 4*(2*60+420+336+2*60) + 16},
		// The same convolution pooled to 3×3, of which the windows hold 6×6 pixels.
		{"conv2d.nhwc.pool.dw.sgd", [][]int{{5, 3, 2, 2}, {2, 3, 3, 5}, {2, 3, 3, 5}, {2, 7, 8, 3}, {2}, {5}, {5, 3, 2, 2}, {5}},
			append(kerneltest.ConvPoolParams(0, 1, 2, 2), kerneltest.SGDParams(0.9, 0, 0)...),
			2*36*60*2 + 90 + 65*4, 4*(2*60+2*5+90+336+2*60+2*5) + 90 + 16},
		// 2·5 sums of 42 products, one sum of the bias, and 215 steps.
		{"dense.nhwc.dw.sgd", [][]int{{5, 3, 2, 7}, {2, 5}, {2, 2, 7, 3}, {2}, {5}, {5, 3, 2, 7}, {5}}, kerneltest.SGDParams(0.9, 0, 0),
			840 + 10 + 215*4, 4*(2*210+2*5+10+84+2*210+2*5) + 16},
	} {
		k, _ := kernels.KernelByName(c.op)
		s := kerneltest.New(k, dag.Float32, c.shapes, kerneltest.FirstModes(k), c.params, 0)
		if flops, bytes := k.Work(&s.Spec); flops != c.flops || bytes != c.bytes {
			t.Errorf("%s: %g flops and %d bytes, want %g and %d", c.op, flops, bytes, c.flops, c.bytes)
		}
	}
}

// TestTable checks what the tests and callers assume of every line.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range kernels.Kernels() {
		if seen[k.Op] || k.Doc == "" {
			t.Errorf("%s: twice in the table, or without Doc", k.Op)
		}
		seen[k.Op] = true
		if k.Host != (len(k.Variants) == 0) || !k.Host && k.Variants[0].Name != "ref" {
			t.Errorf("%s: the first variant is ref, and a host operation has none", k.Op)
		}
		for j, o := range k.Operands {
			if o.Name == "" || o.Dims == "" || len(o.Modes) == 0 || j > 0 && k.Operands[j-1].Optional && !o.Optional {
				t.Errorf("%s: operand %d (%s) is incomplete or follows an optional one", k.Op, j, o.Name)
			}
		}
		checkVariants(t, &k)
	}
}

// TestTableStaysItself: what is handed out shares no memory with the table, so nobody can
// change it.
func TestTableStaysItself(t *testing.T) {
	before := tableText(kernels.Kernels())
	all := kernels.Kernels()
	for i := range all {
		one := must.Get(kernels.KernelByName(all[i].Op))(t)
		spoil(reflect.ValueOf(one).Elem())
	}
	spoil(reflect.ValueOf(&all).Elem())
	if after := tableText(kernels.Kernels()); after != before {
		t.Errorf("the table was changed from outside:\n%s\nwas\n%s", after, before)
	}
	if _, err := kernels.KernelByName("none"); err == nil || !strings.Contains(err.Error(), `operation "none" is not one of feed, fetch, `) {
		t.Errorf("an operation that there is not: %v", err)
	}
}

// tableText has all of a table but its functions.
func tableText(all []kernels.Kernel) string {
	var b strings.Builder
	for _, k := range all {
		fmt.Fprintf(&b, "%s %s %v %v %v\n", k.Op, k.Doc, k.Operands, k.Parameters(), k.Host)
		for _, v := range k.Variants {
			fmt.Fprintf(&b, "  %s %s %s %v %v %v %d %d %s %d\n", v.Name, v.Doc, v.Code, v.Level, v.Run32 != nil, v.Types, v.Capability, v.FactorBits, v.Library, v.MostElements)
		}
	}
	return b.String()
}

// spoil sets all that a value reaches to zero, the innermost first.
func spoil(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				spoil(v.Field(i))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			spoil(v.Index(i))
		}
	case reflect.Pointer, reflect.Map:
		panic("copies of the table do not copy what is behind a " + v.Type().String())
	}
	v.SetZero()
}

// checkVariants checks that variants have what their kind needs, names of their own, and
// those for CPUs first.
func checkVariants(t *testing.T, k *kernels.Kernel) {
	t.Helper()
	names := map[string]bool{}
	for i, v := range k.Variants {
		has := func(of dag.DType) bool { return v.Types == nil || slices.Contains(v.Types, of) }
		cpu := (v.Run32 != nil) == has(dag.Float32) && (v.Run64 != nil) == has(dag.Float64) && v.Launches == nil && v.Capability == 0
		device := v.Run32 == nil && v.Run64 == nil && v.Launches != nil && v.Level == simd.Go
		if (v.Library != "") != (v.LibraryCall != nil) || v.Library != "" && v.Code != calls.CUDACode || v.Library == "" && v.Before != nil {
			t.Errorf("%s %s: a call of no library, or a library without one", k.Op, v.Name)
		}
		if v.Doc == "" || names[v.Name] || v.RunsOn(calls.GoCode) && !cpu || !v.RunsOn(calls.GoCode) && !device {
			t.Errorf("%s %s: incomplete, or twice", k.Op, v.Name)
		}
		names[v.Name] = true
		if v.RunsOn(calls.GoCode) && i > 0 && !k.Variants[i-1].RunsOn(calls.GoCode) {
			t.Errorf("%s %s: after variants for other kinds of devices", k.Op, v.Name)
		}
	}
}
