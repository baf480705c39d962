//go:build cuda

package cuda

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"dahl/kernels"
	launches "dahl/kernels/cuda"
)

// loadedBlas is cuBLAS, or nil where a machine with a GPU has none; the test driver has one.
func loadedBlas(t *testing.T, d *Device) *Blas {
	t.Helper()
	b, err := LoadBlas()
	if err == nil {
		return b
	}
	if name, _ := d.Name(); strings.HasPrefix(name, "Test device") || !errors.Is(err, ErrNoLibrary) {
		t.Fatal(err)
	}
	return nil
}

// TestBlasNames: a driver serves libraries of its own CUDA version and of older ones.
func TestBlasNames(t *testing.T) {
	for version, want := range map[int][]string{
		13010: {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11"},
		12000: {"libcublas.so.12", "libcublas.so.11"},
		10020: nil,
	} {
		if got := blasNames(version); !slices.Equal(got, want) {
			t.Errorf("driver %d: %v, want %v", version, got, want)
		}
	}
}

// TestBlasAbsent: a library that is not there, and one that is too old (the C library stands
// for it: it has no products), are errors of one line that name the file.
func TestBlasAbsent(t *testing.T) {
	for _, names := range [][]string{{"libnothere.so.1", "libnothere.so.2"}, {"libc.so.6"}, nil} {
		b, err := loadBlas(names)
		if b != nil || !errors.Is(err, ErrNoLibrary) || strings.Contains(err.Error(), "\n") {
			t.Fatalf("%v: %v, error %v", names, b, err)
		}
		for _, name := range names {
			if !strings.Contains(err.Error(), name) {
				t.Errorf("%v: error %q does not name %s", names, err, name)
			}
		}
	}
}

// blasBench has a handle for the bench's stream and operands of whole numbers, so that
// sums have no rounding.
func blasBench(t *testing.T) (*bench, *Blas, BlasHandle) {
	t.Helper()
	b := newBench(t)
	blas := loadedBlas(t, b.device)
	if blas == nil {
		t.Skip("there is no cuBLAS")
	}
	h, err := blas.NewHandle(b.stream)
	must(t, err)
	t.Cleanup(func() { must(t, h.Destroy()) })
	for i := range 2 {
		for j := range view[float32](b.at(i)) {
			view[float32](b.at(i))[j] = float32((j*(i+3) + i) % 7)
		}
		b.upload(b.stream, i)
	}
	return b, blas, h
}

// TestBlasProduct computes every combination of transposed factors, of 3×5 by 5×2 in rows of
// 11 elements, with and without what the result holds, and compares with the sum as written;
// and the same as a graph that is issued twice, of which each issue adds.
func TestBlasProduct(t *testing.T) {
	b, blas, h := blasBench(t)
	const rows, columns, depth, stride = 3, 2, 5, 11
	for form := range 8 {
		a := launches.Matrix{Addr: uint64(b.operands[0]), Stride: stride, Transposed: form&1 != 0}
		w := launches.Matrix{Addr: uint64(b.operands[1]), Stride: stride, Transposed: form&2 != 0}
		add := form&4 != 0
		p := blas.Prepare(&launches.Product{Rows: rows, Columns: columns, Depth: depth, A: a, B: w,
			C: launches.Matrix{Addr: uint64(b.operands[2]), Stride: stride}, Add: add})
		for i := range view[float32](b.at(2)) {
			view[float32](b.at(2))[i] = 1
		}
		b.upload(b.stream, 2)
		graph, err := b.stream.Capture(func() error { return h.Multiply(p) })
		must(t, err, h.Multiply(p), b.stream.LaunchGraph(graph), b.stream.LaunchGraph(graph))
		b.download(b.stream, 2)
		must(t, b.stream.Synchronize(), graph.Free())
		p.Free()

		at := func(operand int, m launches.Matrix, i, j int) float32 {
			if m.Transposed {
				i, j = j, i
			}
			return view[float32](b.at(operand))[i*stride+j]
		}
		for i, got := range view[float32](b.at(2))[:rows*stride] {
			want := float32(1)
			if i%stride < columns {
				sum := float32(0)
				for k := range depth {
					sum += at(0, a, i/stride, k) * at(1, w, k, i%stride)
				}
				want = sum
				if add {
					want = 1 + 3*sum
				}
			}
			if got != want {
				t.Fatalf("a transposed %v, b %v, add %v: element %d is %g, want %g", a.Transposed, w.Transposed, add, i, got, want)
			}
		}
	}
}

// TestBlasAllocatesNothing: issuing a product takes nothing from Go's heap.
func TestBlasAllocatesNothing(t *testing.T) {
	b, blas, h := blasBench(t)
	m := func(i int) launches.Matrix { return launches.Matrix{Addr: uint64(b.operands[i]), Stride: 7} }
	p := blas.Prepare(&launches.Product{Rows: 3, Columns: 5, Depth: 7, A: m(0), B: m(1), C: m(2)})
	defer p.Free()
	issue := func() {
		if err := h.Multiply(p); err != nil {
			t.Fatal(err)
		}
	}
	if n := testing.AllocsPerRun(100, issue); n != 0 {
		t.Errorf("%g allocations for a product", n)
	}
}

// TestBlasRefuses: what the library refuses is an error that names the call and the status.
func TestBlasRefuses(t *testing.T) {
	b, blas, h := blasBench(t)
	m := launches.Matrix{Addr: uint64(b.operands[0]), Stride: 2}
	p := blas.Prepare(&launches.Product{Rows: 3, Columns: 5, Depth: 7, A: m, B: m, C: m})
	defer p.Free()
	if err := h.Multiply(p); err == nil || err.Error() != "cublas gemm: CUBLAS_STATUS_INVALID_VALUE" {
		t.Errorf("rows of 7 elements that are 2 apart: %v", err)
	}
}

// TestLibraryVariants: dense layers and their gradients have both variants of cuBLAS, and none
// of them is what a device runs unasked.
func TestLibraryVariants(t *testing.T) {
	for _, op := range []string{"dense", "dense.relu", "dense.dx", "dense.dx.relu", "dense.dw", "dense.dw.sgd"} {
		k, _ := kernels.Lookup(op)
		for _, name := range []string{"cublas", "cublas-tf32"} {
			if v, ok := k.Variant(name); !ok || v.Library != kernels.CuBLAS {
				t.Errorf("%s has no variant %s of cuBLAS", op, name)
			}
		}
		if v := k.DefaultFor("cuda"); v.Name != "cuda" {
			t.Errorf("%s: a GPU runs %s unasked", op, v.Name)
		}
	}
}
