//go:build cuda

package cuda

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"dahl/kernels/offload"
)

// fusedForm is one of the ways in which a product can be asked for.
type fusedForm struct {
	bias, relu bool
}

// Extents and places of a product, in elements. Its operands begin at 4-byte
// boundaries and no greater ones.
const (
	fusedRows, fusedColumns, fusedDepth, fusedStride = 3, 2, 7, 11
	fusedVector, fusedWork                           = 101, 1 << 13
	fusedOffset                                      = 5
	fusedWorkBytes                                   = 1 << 12
)

// fusedProduct is the product of operands 0 and 1 into operand 2, behind which are the vector
// and the workspace.
func fusedProduct(b *bench, f fusedForm) offload.FusedProduct {
	at := func(operand, element int) uint64 { return uint64(b.operands[operand]) + 4*uint64(element) }
	p := offload.FusedProduct{Product: offload.Product{
		Rows: fusedRows, Columns: fusedColumns, Depth: fusedDepth,
		A:    offload.Matrix{Addr: at(0, fusedOffset), Stride: fusedStride},
		B:    offload.Matrix{Addr: at(1, fusedOffset), Stride: fusedStride},
		C:    offload.Matrix{Addr: at(2, fusedOffset), Stride: fusedStride},
		Work: at(2, fusedWork), WorkBytes: fusedWorkBytes,
	}, ReLU: f.relu}
	if f.bias {
		p.Bias = at(2, fusedVector)
	}
	return p
}

// TestBlasLtRepeats: sums that are split have the same bits each time, of terms whose order matters.
func TestBlasLtRepeats(t *testing.T) {
	b, h := libraryBench(t, offload.CuBLASLt)
	for i := range 2 {
		for j := range view[float32](b.at(i)) {
			view[float32](b.at(i))[j] = float32(math.Sin(float64(j*(i+3)))) * float32(math.Exp2(float64(j%13)))
		}
		b.upload(b.stream, i)
	}
	from := fusedProduct(b, fusedForm{})
	from.Rows, from.Columns, from.Depth, from.A.Stride = 3, 5, 211, 223
	p, err := h.Prepare(from)
	must(t, err)
	defer p.Free()
	var first []byte
	for range 5 {
		must(t, h.Issue(p))
		b.download(b.stream, 2)
		must(t, b.stream.Synchronize())
		if first == nil {
			first = slices.Clone(b.at(2)[:4*fusedWork])
		} else if !slices.Equal(first, b.at(2)[:4*fusedWork]) {
			t.Fatal("another call has other bits")
		}
	}
}

// TestBlasLtArithmetic: with factors 1 + 2⁻¹² and 1 a product in float32 keeps every bit, while of
// the former tf32 keeps 11: it is 1 there. A library may compute more exactly than it is asked to,
// which that of the tests does not.
func TestBlasLtArithmetic(t *testing.T) {
	b, h := libraryBench(t, offload.CuBLASLt)
	for i, v := range []float32{1 + 0x1p-12, 1} {
		for j := range view[float32](b.at(i)) {
			view[float32](b.at(i))[j] = v
		}
		b.upload(b.stream, i)
	}
	for _, tf32 := range []bool{false, true} {
		want := float32(fusedDepth * (1 + 0x1p-12))
		if tf32 {
			emulated(t, b.device)
			want = fusedDepth
		}
		from := fusedProduct(b, fusedForm{})
		from.TF32 = tf32
		p, err := h.Prepare(from)
		must(t, err)
		must(t, h.Issue(p))
		b.download(b.stream, 2)
		must(t, b.stream.Synchronize())
		p.Free()
		if got := view[float32](b.at(2))[fusedOffset]; got != want {
			t.Errorf("tf32 %v: %g, want %g", tf32, got, want)
		}
	}
}

// TestBlasLtRefuses: what there is no algorithm for is told from what makes no sense.
func TestBlasLtRefuses(t *testing.T) {
	b, h := libraryBench(t, offload.CuBLASLt)
	emulated(t, b.device)
	for _, c := range []struct {
		name    string
		change  func(p *offload.FusedProduct)
		want    string
		refused bool
	}{
		{"half an element off", func(p *offload.FusedProduct) { p.A.Addr += 2 },
			"cuBLASLt has no algorithm in float32 for 3×7 by 7×2 with epilogue 1: the library does not do this", true},
		{"a bias half an element off", func(p *offload.FusedProduct) { p.Bias, p.TF32 = p.C.Addr+2, true },
			"cuBLASLt has no algorithm in tf32 for 3×7 by 7×2 with epilogue 4: the library does not do this", true},
		{"rows of 7 elements that are 5 apart", func(p *offload.FusedProduct) { p.A.Stride = 5 },
			"cublasLtMatmulAlgoGetHeuristic: CUBLAS_STATUS_INVALID_VALUE", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			from := fusedProduct(b, fusedForm{})
			c.change(&from)
			p, err := h.Prepare(from)
			if p != nil || err == nil || err.Error() != c.want || errors.Is(err, offload.ErrRefused) != c.refused {
				t.Errorf("error %v, want %s", err, c.want)
			}
		})
	}
}

// TestBlasLtWorkspace: with no workspace there is an algorithm, too, and one that was chosen with one
// gets it: where it is not aligned to 256 bytes, issuing fails.
func TestBlasLtWorkspace(t *testing.T) {
	b, h := libraryBench(t, offload.CuBLASLt)
	emulated(t, b.device)
	for _, c := range []struct {
		work  uint64
		bytes int64
		want  string
	}{
		{0, 0, ""}, {4 * fusedWork, 1 << 12, ""}, {4*fusedWork + 128, 1 << 12, "cublasLtMatmul: CUBLAS_STATUS_INVALID_VALUE"},
	} {
		from := fusedProduct(b, fusedForm{})
		from.Work, from.WorkBytes = uint64(b.operands[2])+c.work, c.bytes
		p, err := h.Prepare(from)
		must(t, err)
		if err := h.Issue(p); fmt.Sprint(err) != fmt.Sprint(errorOf(c.want)) {
			t.Errorf("%d bytes at %d: %v, want %q", c.bytes, c.work, err, c.want)
		}
		p.Free()
	}
}

func errorOf(text string) error {
	if text == "" {
		return nil
	}
	return errors.New(text)
}

// TestAlignment: address and distance of rows decide together, up to 64 bytes: a region in rows of 44
// bytes, of a storage at a multiple of 64, is at none above 4 in some row, in rows of 96 bytes at 32.
func TestAlignment(t *testing.T) {
	for _, c := range []struct {
		address uint64
		stride  int32
		size    uint64
		want    uint64
	}{
		{1 << 40, 64, 4, 64}, {1<<40 + 64, 128, 8, 64}, {1 << 40, 24, 4, 32}, {1<<40 + 3*96, 24, 4, 32}, {1<<40 + 16, 24, 4, 16},
		{1 << 40, 11, 4, 4}, {1 << 40, 11, 8, 8}, {1<<40 + 2, 64, 4, 2},
	} {
		if got := alignment(offload.Matrix{Addr: c.address, Stride: c.stride}, c.size); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}
