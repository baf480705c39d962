package gpu_test

import (
	"slices"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/kernels"
	"dahl/kernels/kerneltest"
	"dahl/kernels/offload"
	"dahl/must"
)

// TestFusedProducts: of each operation cuBLASLt does what it can, and kernels of ours what is
// left: of 3 samples, 5 outputs and 7 inputs, unless it is one sample. What is in the workspace
// does not overlap and is as large as the variant says.
func TestFusedProducts(t *testing.T) {
	const read, write, add, f32, f64 = dag.Read, dag.Write, dag.ReadWrite, dag.Float32, dag.Float64
	const work = 1 << 48
	const follow, column = "product_follow", "dense_dw_cuda"
	x, y, w, v := []int{3, 7}, []int{3, 5}, []int{5, 7}, []int{5}
	one, oneOut := []int{1, 7}, []int{1, 5}
	xMap, wMap := []int{3, 2, 3, 4}, []int{5, 4, 2, 3}
	sgd := kerneltest.SGDParams(0.9, 0, 0.01)
	for _, c := range []struct {
		op       string
		real     dag.DType
		shapes   [][]int
		modes    []dag.Mode
		bias     int // operand that the library adds; 0: none
		relu     bool
		sums     int // operand that the library sums rows into; -1: the workspace, 0: none
		launches []string
	}{
		{"dense", f32, [][]int{y, x, w}, []dag.Mode{write, read, read}, 0, false, 0, nil},
		{"dense", f32, [][]int{y, x, w, v}, []dag.Mode{write, read, read, read}, 3, false, 0, nil},
		{"dense", f64, [][]int{y, x, w, v}, []dag.Mode{write, read, read, read}, 3, false, 0, nil},
		{"dense.relu", f32, [][]int{y, x, w}, []dag.Mode{write, read, read}, 0, true, 0, nil},
		{"dense.relu", f64, [][]int{y, x, w, v}, []dag.Mode{write, read, read, read}, 3, true, 0, nil},
		{"dense.dx", f32, [][]int{x, y, w}, []dag.Mode{write, read, read}, 0, false, 0, nil},
		{"dense.dx", f32, [][]int{x, y, w}, []dag.Mode{add, read, read}, 0, false, 0, nil},
		{"dense.dx.relu", f32, [][]int{x, y, w, x}, []dag.Mode{write, read, read, read}, 0, false, 0, []string{follow}},
		{"dense.dw", f32, [][]int{w, y, x}, []dag.Mode{write, read, read}, 0, false, 0, nil},
		{"dense.dw", f32, [][]int{w, y, x, v}, []dag.Mode{write, read, read, write}, 0, false, 3, nil},
		{"dense.dw", f32, [][]int{w, y, x, v}, []dag.Mode{add, read, read, write}, 0, false, 3, nil},
		{"dense.dw", f32, [][]int{w, y, x, v}, []dag.Mode{add, read, read, add}, 0, false, -1, []string{follow}},
		{"dense.dw", f64, [][]int{w, y, x, v}, []dag.Mode{write, read, read, write}, 0, false, 0, []string{column}},
		{"dense.dw", f32, [][]int{w, oneOut, one, v}, []dag.Mode{write, read, read, write}, 0, false, 0, []string{column}},
		{"dense.dw.sgd", f32, [][]int{w, y, x, {2}, v, w, v}, []dag.Mode{add, read, read, read, add, add, add}, 0, false, -1, []string{follow, follow}},
		{"dense.dw.sgd", f64, [][]int{w, y, x, {2}, v, w, v}, []dag.Mode{add, read, read, read, add, add, add}, 0, false, 0, []string{follow, column}},
		{"dense.dw.sgd.nobias", f32, [][]int{w, y, x, {2}, w}, []dag.Mode{add, read, read, read, add}, 0, false, 0, []string{follow}},
		{"dense.nhwc.dw.sgd.nobias", f32, [][]int{wMap, y, xMap, {2}, wMap}, []dag.Mode{add, read, read, read, add}, 0, false, 0, []string{follow}},
		{"dense.nhwc.dw.sgd", f32, [][]int{wMap, y, xMap, {2}, v, wMap, v}, []dag.Mode{add, read, read, read, add, add, add}, 0, false, 0, []string{follow, "conv2d_nhwc_dw_cuda"}},
	} {
		k, _ := kernels.KernelByName(c.op)
		params := sgd
		if !strings.Contains(c.op, ".sgd") {
			params = nil
		}
		s := kerneltest.New(k, c.real, c.shapes, c.modes, params, 1)
		must.Do(t, kernels.Validate(&s.Spec))
		var bases []uint64
		for i := range c.shapes {
			bases = append(bases, uint64(i+1)<<32)
		}
		call := s.DeviceCall(bases, work)
		variant, _ := k.Variant("cublaslt")
		p := variant.LibraryCall(call).(offload.FusedProduct)
		name := c.op + " " + c.real.String() + " " + s.Spec.Key()

		operand := func(i int) uint64 {
			if i <= 0 {
				return 0
			}
			return call.Args[i].Addr
		}
		if c.sums < 0 != (p.RowSums >= work) || c.sums >= 0 && p.RowSums != operand(c.sums) || p.Bias != operand(c.bias) || p.ReLU != c.relu {
			t.Errorf("%s: bias %#x, ReLU %v, row sums %#x", name, p.Bias, p.ReLU, p.RowSums)
		}
		if direct := len(c.launches) == 0 || c.launches[0] != follow || c.op == "dense.dw"; direct != (p.C.Addr == call.Args[0].Addr) || p.Add != (direct && c.modes[0] == add) {
			t.Errorf("%s: result at %#x, added: %v", name, p.C.Addr, p.Add)
		}
		var launched []string
		for _, l := range variant.Launches(call) {
			launched = append(launched, l.Symbol)
		}
		if !slices.EqualFunc(launched, c.launches, strings.HasPrefix) {
			t.Errorf("%s: launches %v, want %v", name, launched, c.launches)
		}
		checkWorkspace(t, name, &p, work, variant.WorkspaceBytes(&s.Spec), c.real.SizeBytes())
	}
}

// checkWorkspace checks that a copy of the first factor, transposed as it is, what a product leaves
// in the workspace, and the library's own lie in it one after the other.
func checkWorkspace(t *testing.T, name string, p *offload.FusedProduct, work uint64, bytes, size int64) {
	t.Helper()
	end := work
	for _, part := range []struct {
		at    uint64
		bytes int64
	}{
		{p.A.Addr, int64(p.Depth) * int64(p.A.Stride) * size}, {p.C.Addr, int64(p.Rows) * int64(p.C.Stride) * size}, {p.RowSums, int64(p.Rows) * size}, {p.Work, p.WorkBytes},
	} {
		if part.at < work {
			continue // it is an operand, or not there
		}
		if part.at < end || part.at%256 != 0 {
			t.Errorf("%s: %d bytes of the workspace begin at %d, before or off %d", name, part.bytes, part.at-work, end-work)
		}
		end = part.at + uint64(part.bytes)
	}
	if p.WorkBytes != 32<<20 || end > work+uint64(bytes) {
		t.Errorf("%s: the library's own workspace of %d bytes ends at %d of %d", name, p.WorkBytes, end-work, bytes)
	}
}

// TestLibraryTakesMaps: the weights' step over a map of 3 samples, 2×3 pixels and 4 channels is a
// product of 24 inputs by 5 outputs over 3 samples. Where the map's samples lie apart, they are
// read where they are; where their pixels do, from a copy without gaps, whose room (288 bytes, rounded up to 512) is
// there in both cases, so that the other addresses are the same.
func TestLibraryTakesMaps(t *testing.T) {
	k, _ := kernels.KernelByName("dense.nhwc.dw.sgd")
	v, _ := k.Variant("cublas")
	const read, add, work = dag.Read, dag.ReadWrite, uint64(1) << 48
	s := kerneltest.New(k, dag.Float32, [][]int{{5, 4, 2, 3}, {3, 5}, {3, 2, 3, 4}, {2}, {5}}, []dag.Mode{add, read, read, read, add}, kerneltest.SGDParams(0, 0, 0), 0)
	bases := []uint64{1 << 32, 2 << 32, 3 << 32, 4 << 32, 5 << 32}
	for _, c := range []struct {
		name   string
		stride []int // of the map
		factor offload.Matrix
		copies int
	}{
		{"whole", []int{24, 12, 4, 1}, offload.Matrix{Addr: 3 << 32, Stride: 24, Transposed: true}, 0},
		{"samples apart", []int{48, 12, 4, 1}, offload.Matrix{Addr: 3 << 32, Stride: 48, Transposed: true}, 0},
		{"pixels apart", []int{48, 24, 8, 1}, offload.Matrix{Addr: work, Stride: 24, Transposed: true}, 1},
	} {
		call := s.DeviceCall(bases, work)
		call.Args[2].Stride = c.stride
		p := v.LibraryCall(call).(offload.Product)
		want := offload.Product{Rows: 24, Columns: 5, Depth: 3, A: c.factor, B: offload.Matrix{Addr: 2 << 32, Stride: 5},
			C: offload.Matrix{Addr: work + 512, Stride: 8}, Work: work + 512 + 768, WorkBytes: 32 << 20}
		if p != want {
			t.Errorf("%s: %+v, want %+v", c.name, p, want)
		}
		if n := len(v.Before(call)); n != c.copies {
			t.Errorf("%s: %d copies before, want %d", c.name, n, c.copies)
		}
	}
}
