//go:build cuda

package cuda

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"dahl/kernels"
	"dahl/kernels/calls"
	"dahl/kernels/offload"
)

// loadedLibrary is a library, or nil where a machine with a GPU has none; the test driver has all.
func loadedLibrary(t *testing.T, d *Device, name string) *Library {
	t.Helper()
	l, err := Load(name)
	if err == nil {
		return l
	}
	if strings.HasPrefix(d.Name, "Test device") || !errors.Is(err, ErrNoLibrary) {
		t.Fatal(err)
	}
	return nil
}

// refused reports whether the library of a machine with a GPU does not do a call, as it may; that
// of the tests does all that is asked for.
func refused(t *testing.T, d *Device, err error) bool {
	t.Helper()
	if strings.HasPrefix(d.Name, "Test device") || !errors.Is(err, offload.ErrRefused) {
		return false
	}
	t.Log(err)
	return true
}

// TestLibraryFiles: a driver serves libraries of its own CUDA version and of older ones. Versions of
// cuBLASLt before 12 are not looked for.
func TestLibraryFiles(t *testing.T) {
	for _, c := range []struct {
		library string
		version int
		want    []string
	}{
		{offload.CuBLAS, 13010, []string{"libcublas.so.13", "libcublas.so.12", "libcublas.so.11"}},
		{offload.CuBLAS, 12000, []string{"libcublas.so.12", "libcublas.so.11"}},
		{offload.CuBLAS, 10020, nil},
		{offload.CuBLASLt, 13010, []string{"libcublasLt.so.13", "libcublasLt.so.12"}},
		{offload.CuBLASLt, 11080, nil},
	} {
		if got := sources[c.library].files(c.version); !slices.Equal(got, c.want) {
			t.Errorf("driver %d: %v, want %v", c.version, got, c.want)
		}
	}
}

// TestLibraryAbsent: a library that is not there, and one that is too old (the C library stands
// for it: it has none of the functions), are errors of one line that name the file.
func TestLibraryAbsent(t *testing.T) {
	for library, source := range sources {
		for _, names := range [][]string{{"libnothere.so.1", "libnothere.so.2"}, {"libc.so.6"}, nil} {
			l, err := source.load(names)
			if l != nil || !errors.Is(err, ErrNoLibrary) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("%s, %v: %v, error %v", library, names, l, err)
			}
			for _, name := range names {
				if !strings.Contains(err.Error(), name) {
					t.Errorf("%s, %v: error %q does not name %s", library, names, err, name)
				}
			}
		}
	}
}

// libraryBench has a handle of a library for the bench's stream and operands of whole numbers,
// so that sums have no rounding.
func libraryBench(t *testing.T, name string) (*bench, LibraryHandle) {
	t.Helper()
	b := newBench(t)
	library := loadedLibrary(t, b.device, name)
	if library == nil {
		t.Skipf("there is no %s", name)
	}
	h, err := library.NewHandle(b.stream)
	must(t, err)
	t.Cleanup(func() { must(t, h.Destroy()) })
	for i := range 2 {
		for j := range view[float32](b.at(i)) {
			view[float32](b.at(i))[j] = float32((j*(i+3) + i) % 7)
		}
		b.upload(b.stream, i)
	}
	return b, h
}

// TestLibrariesAllocateNothing: issuing a call of a library takes nothing from Go's heap.
func TestLibrariesAllocateNothing(t *testing.T) {
	for name, call := range map[string]func(b *bench) offload.LibraryCall{
		offload.CuBLAS: func(b *bench) offload.LibraryCall {
			m := func(i int) offload.Matrix { return offload.Matrix{Addr: uint64(b.operands[i]), Stride: 7} }
			return offload.Product{Rows: 3, Columns: 5, Depth: 7, A: m(0), B: m(1), C: m(2)}
		},
		offload.CuBLASLt: func(b *bench) offload.LibraryCall { return fusedProduct(b, fusedForm{bias: true, relu: true}) },
		offload.CuDNN:    func(b *bench) offload.LibraryCall { return smallConvolution(b, offload.WeightGradient) },
	} {
		t.Run(name, func(t *testing.T) {
			b, h := libraryBench(t, name)
			ready, err := h.Prepare(call(b))
			must(t, err)
			defer ready.Free()
			issue := func() {
				if err := h.Issue(ready); err != nil {
					t.Fatal(err)
				}
			}
			if n := testing.AllocsPerRun(100, issue); n != 0 {
				t.Errorf("%g allocations for a call", n)
			}
		})
	}
}

// TestBlasRefuses: what the library refuses is an error that names the call and the status.
func TestBlasRefuses(t *testing.T) {
	b, h := libraryBench(t, offload.CuBLAS)
	m := offload.Matrix{Addr: uint64(b.operands[0]), Stride: 2}
	p, err := h.Prepare(offload.Product{Rows: 3, Columns: 5, Depth: 7, A: m, B: m, C: m})
	must(t, err)
	defer p.Free()
	if err := h.Issue(p); err == nil || err.Error() != "cublas gemm: CUBLAS_STATUS_INVALID_VALUE" {
		t.Errorf("rows of 7 elements that are 2 apart: %v", err)
	}
}

// TestBlasError: of what the library answers only that it does not support a call makes another
// variant the way out, and only that it got no memory another device.
func TestBlasError(t *testing.T) {
	for status := range blasStatuses {
		err := blasError("call", status)
		if refused := errors.Is(err, offload.ErrRefused); refused != (status == 15) {
			t.Errorf("status %d: refused %v", status, refused)
		}
		var e *Error
		if noMemory := errors.As(err, &e) && e.OutOfMemory() && !e.Lost(); noMemory != (status == 3) {
			t.Errorf("status %d: out of memory %v", status, noMemory)
		}
	}
	if err := blasError("call", 3); err.Error() != "call: CUBLAS_STATUS_ALLOC_FAILED" {
		t.Error(err)
	}
	if err := blasError("call", 15); err.Error() != "call: CUBLAS_STATUS_NOT_SUPPORTED: the library does not do this" {
		t.Error(err)
	}
}

// TestLibraryVariants: dense layers and their gradients have both variants of cuBLAS and of
// cuBLASLt, and none of them is what a device runs unasked.
func TestLibraryVariants(t *testing.T) {
	for _, op := range []string{"dense", "dense.relu", "dense.dx", "dense.dx.relu", "dense.dw", "dense.dw.sgd", "dense.dw.sgd.nobias", "dense.nhwc.dw.sgd", "dense.nhwc.dw.sgd.nobias"} {
		k, _ := kernels.KernelByName(op)
		for _, library := range []string{offload.CuBLAS, offload.CuBLASLt} {
			for _, name := range []string{library, library + "-tf32"} {
				if v, ok := k.Variant(name); !ok || v.Library != library {
					t.Errorf("%s has no variant %s of %s", op, name, library)
				}
			}
		}
		if v := k.DefaultFor(calls.CUDACode); v.Name != "cuda" {
			t.Errorf("%s: a GPU runs %s unasked", op, v.Name)
		}
	}
}
