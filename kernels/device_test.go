package kernels

import (
	"slices"
	"testing"

	"dahl/dag"
	"dahl/kernels/calls"
	"dahl/kernels/offload"
)

// TestVariantsByCode checks which variants devices of each code choose from.
func TestVariantsByCode(t *testing.T) {
	run := func(*calls.Call) {}
	launches := func(*calls.DeviceCall) []offload.Launch { return nil }
	k := &Kernel{Variants: []calls.Variant{
		{Name: "ref", Run32: run, Run64: run}, {Name: "go", Run32: run, Run64: run},
		{Name: "tf32", Code: calls.CUDACode, Launches: launches, Types: []dag.DType{dag.Float32}, Capability: 80},
		{Name: "blas", Code: calls.CUDACode, Launches: launches, Library: offload.CuBLAS},
		{Name: "cuda", Code: calls.CUDACode, Launches: launches},
	}}
	for _, c := range []struct{ code, fallback string }{{"go", "go"}, {"cuda", "cuda"}} {
		if v := k.DefaultFor(c.code); v == nil || v.Name != c.fallback {
			t.Errorf("code %s: the default is %v, want %s", c.code, v, c.fallback)
		}
	}
	if v := k.DefaultFor("fpga"); v != nil {
		t.Errorf("a device of an unknown code runs %s", v.Name)
	}
	if v := (&Kernel{Variants: k.Variants[:2]}).DefaultFor("cuda"); v != nil {
		t.Errorf("a cuda device runs %s", v.Name)
	}
	for _, c := range []struct {
		code, name string
		real       dag.DType
		found      bool
	}{
		{"go", "go", dag.Float32, true}, {"go", "ref", dag.Float64, true},
		{"go", "cuda", dag.Float32, false}, {"go", "tf32", dag.Float32, false}, {"cuda", "go", dag.Float32, false},
		{"cuda", "tf32", dag.Float32, true}, {"cuda", "tf32", dag.Float64, false}, {"cuda", "blas", dag.Float64, true}, {"cuda", "none", dag.Float32, false},
	} {
		v, ok := k.VariantFor(c.code, c.real, c.name)
		if ok != c.found || ok && v.Name != c.name {
			t.Errorf("variant %s for %v in %s: found %v", c.name, c.real, c.code, ok)
		}
	}
}

// TestBindDevice: rows 1 to 3 and columns 2 to 7 of a 5×11 float64 buffer begin at
// element 13 and have the buffer's strides.
func TestBindDevice(t *testing.T) {
	buf := dag.Buffer{Shape: []int{5, 11}, Type: dag.Float64}
	a := calls.BindDevice(1<<40, &buf, dag.Box{{Lo: 1, Hi: 3}, {Lo: 2, Hi: 7}}, dag.ReadWrite)
	if a.Addr != 1<<40+13*8 || a.Type != dag.Float64 || !slices.Equal(a.Shape, []int{2, 5}) || !slices.Equal(a.Stride, []int{11, 1}) || !a.Accumulates() {
		t.Errorf("bound as %+v", a)
	}
	if a = calls.BindDevice(256, &buf, nil, dag.Write); a.Addr != 256 || !slices.Equal(a.Shape, buf.Shape) || a.Accumulates() {
		t.Errorf("whole buffer bound as %+v", a)
	}
}

// TestTakes: cuDNN pads all sides alike, slides squares, and does not add to a result.
func TestTakes(t *testing.T) {
	for _, c := range []struct {
		op     string
		shapes [][]int
		mode   dag.Mode
		geometry
		fits bool
	}{
		{"conv2d.nhwc", [][]int{{2, 6, 7, 7}, {2, 11, 13, 5}, {3, 3, 5, 7}}, dag.Write, geometry{2, 1, 1, 0, 0}, true},
		{"conv2d.nhwc", [][]int{{2, 6, 7, 7}, {2, 11, 13, 5}, {3, 3, 5, 7}}, dag.ReadWrite, geometry{2, 1, 1, 0, 0}, false},
		{"conv2d.nhwc", [][]int{{2, 6, 6, 7}, {2, 11, 13, 5}, {3, 3, 5, 7}}, dag.Write, geometry{2, 1, 0, 0, 0}, false},
		{"conv2d.nhwc", [][]int{{2, 7, 7, 7}, {2, 11, 13, 5}, {3, 3, 5, 7}}, dag.Write, geometry{2, 1, 1, 0, 0}, false}, // 3 below
		{"conv2d.nhwc", [][]int{{2, 6, 7, 7}, {2, 11, 13, 5}, {3, 2, 5, 7}}, dag.Write, geometry{2, 1, 1, 0, 0}, false},
		{"conv2d.nhwc.dx", [][]int{{2, 4, 13, 5}, {2, 3, 7, 7}, {3, 3, 7, 5}}, dag.ReadWrite, geometry{2, -1, -1, 0, 0}, false},
		{"conv2d.nhwc.dx", [][]int{{2, 11, 13, 5}, {2, 6, 7, 7}, {3, 3, 7, 5}}, dag.ReadWrite, geometry{2, 1, 1, 0, 0}, true},
		// 6×7 pixels have 3×3 windows of 2×2, and not 4×3.
		{"conv2d.nhwc.pool", [][]int{{2, 3, 3, 7}, {2, 3, 3, 7}, {2, 11, 13, 5}, {3, 3, 5, 7}}, dag.Write, geometry{2, 1, 1, 2, 2}, true},
		{"conv2d.nhwc.pool", [][]int{{2, 4, 3, 7}, {2, 4, 3, 7}, {2, 11, 13, 5}, {3, 3, 5, 7}}, dag.Write, geometry{2, 1, 1, 2, 2}, false},
	} {
		s := &calls.Spec{Op: c.op, Type: dag.Float32, Params: dag.Params{
			{Name: "stride", Value: c.stride}, {Name: "top", Value: c.top}, {Name: "left", Value: c.left}, {Name: "size", Value: c.size}, {Name: "step", Value: c.step},
		}}
		for i, shape := range c.shapes {
			s.Operands = append(s.Operands, calls.OperandSpec{Type: s.Type, Mode: []dag.Mode{c.mode, dag.Read}[min(i, 1)], Shape: shape})
		}
		k, _ := lookup(c.op)
		v, _ := k.Variant("cudnn")
		if err := v.Fits(s); (err == nil) != c.fits {
			t.Errorf("%s: error %v", s.Key(), err)
		}
	}
}

// geometry is the parameters of windows.
type geometry struct{ stride, top, left, size, step float64 }

// TestFits: a product on a GPU counts elements in 32 bits, of which 8 are left for a tap of
// ones and for rounding; on CPUs there is no bound.
func TestFits(t *testing.T) {
	k, _ := lookup("dense")
	for _, c := range []struct {
		variant string
		rows    int
		fits    bool
	}{{"cuda", 1<<20 - 1, true}, {"cuda", 1 << 20, false}, {"bf16", 1 << 20, false}, {"ref", 1 << 20, true}} {
		s := &calls.Spec{Op: "dense", Type: dag.Float32}
		for _, shape := range [][]int{{c.rows, 3}, {c.rows, 2048}, {3, 2048}} { // 2^20·2^11 = 2^31
			s.Operands = append(s.Operands, calls.OperandSpec{Type: s.Type, Shape: shape})
		}
		v, ok := k.Variant(c.variant)
		if err := v.Fits(s); !ok || (err == nil) != c.fits {
			t.Errorf("%s of %d rows: error %v", c.variant, c.rows, err)
		}
	}
}

// TestEveryOperationRunsOnCUDA: a network of any layers runs whole on a GPU.
func TestEveryOperationRunsOnCUDA(t *testing.T) {
	for _, k := range table {
		if !k.Host && k.DefaultFor(calls.CUDACode) == nil {
			t.Errorf("%s has no CUDA variant", k.Op)
		}
	}
}
