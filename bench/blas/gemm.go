//go:build peers

package main

import (
	"fmt"
	"io"
	"math"
	"strings"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"

	"dahl/dag"
	"dahl/kernels"
	"dahl/kernels/kerneltest"
	"dahl/kernels/simd"
)

// gemmShape is C(m×n) = op(A)·op(B) over row-major matrices without gaps, where op
// transposes a stored k×m or n×k matrix.
type gemmShape struct {
	m, n, k        int
	transA, transB bool
}

// a and b are the shapes of the operands as they are stored.
func (s *gemmShape) a() []int { return stored(s.m, s.k, s.transA) }
func (s *gemmShape) b() []int { return stored(s.k, s.n, s.transB) }

func stored(rows, columns int, transposed bool) []int {
	if transposed {
		return []int{columns, rows}
	}
	return []int{rows, columns}
}

// lda and ldb are the columns of these.
func (s *gemmShape) lda() int { return s.a()[1] }
func (s *gemmShape) ldb() int { return s.b()[1] }

func (s *gemmShape) flops() float64 { return 2 * float64(s.m) * float64(s.n) * float64(s.k) }

func (s *gemmShape) String() string {
	mark := map[bool]string{true: "ᵀ"}
	return fmt.Sprintf("%d×%d×%d A%s·B%s", s.m, s.n, s.k, mark[s.transA], mark[s.transB])
}

var gemmShapes = []gemmShape{
	{m: 64, n: 64, k: 64},
	{m: 256, n: 256, k: 256},
	{m: 256, n: 256, k: 256, transA: true},
	{m: 256, n: 256, k: 256, transB: true},
	{m: 256, n: 256, k: 256, transA: true, transB: true},
	{m: 512, n: 512, k: 512},
	{m: 1024, n: 1024, k: 1024},
	{m: 32, n: 1024, k: 288},
	{m: 64, n: 10, k: 5408},
}

func gemmTable(w io.Writer, t *timer) {
	fmt.Fprint(w, "\n## Matrix products, GFLOP/s (share of the peak)\n\n")
	fmt.Fprintln(w, "| m×n×k | type | OpenBLAS | oneDNN | gonum | dahl | peak | dahl / OpenBLAS |")
	fmt.Fprintln(w, "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |")
	for i := range gemmShapes {
		gemmRows(w, t, &gemmShapes[i])
	}
}

// gemmRows writes the lines of a shape, one for each type.
func gemmRows(w io.Writer, t *timer, s *gemmShape) {
	g := gonum.Implementation{}
	gemmLine(w, t, s, dag.Float32, openBLASSgemm, oneDNNSgemm, func(s *gemmShape, a, b, c []float32) {
		g.Sgemm(transpose(s.transA), transpose(s.transB), s.m, s.n, s.k, 1, a, s.lda(), b, s.ldb(), 0, c, s.n)
	})
	gemmLine(w, t, s, dag.Float64, openBLASDgemm, nil, func(s *gemmShape, a, b, c []float64) {
		g.Dgemm(transpose(s.transA), transpose(s.transB), s.m, s.n, s.k, 1, a, s.lda(), b, s.ldb(), 0, c, s.n)
	})
}

// transpose is the letter of the operation on an operand.
func transpose(t bool) blas.Transpose {
	if t {
		return blas.Trans
	}
	return blas.NoTrans
}

type gemmFunc[T simd.Float] func(s *gemmShape, a, b, c []T)

// gemmLine checks the contestants against each other and measures them.
func gemmLine[T simd.Float](w io.Writer, t *timer, s *gemmShape, typ dag.DType, openBLAS, oneDNN, gonum gemmFunc[T]) {
	ours := ourGemm(s, typ)
	c, a, b := kernels.Data[T](&ours.args[0]), kernels.Data[T](&ours.args[1]), kernels.Data[T](&ours.args[2])
	for i := range a {
		a[i] = T(i%17)/16 - 0.5
	}
	for i := range b {
		b[i] = T(i%19)/16 - 0.5
	}
	runs := []func(){func() { openBLAS(s, a, b, c) }, nil, func() { gonum(s, a, b, c) }, ours.run}
	if oneDNN != nil {
		runs[1] = func() { oneDNN(s, a, b, c) }
	}
	want := make([]T, len(c))
	gonum(s, a, b, want)
	for _, run := range runs {
		if run != nil {
			run()
			compareProducts(s, typ, c, want)
		}
	}
	cells, end := compare[T](t, s.flops(), runs...)
	fmt.Fprintf(w, "| %v | %v | %s | %s |\n", s, typ, strings.Join(cells, " | "), end)
}

// compareProducts panics where a contestant computes something else. The sums have
// k terms of at most 1/4, each rounded at most k times by u: two results differ by
// at most 2·k·u·k/4 (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed.,
// (3.5), without the terms in u²).
func compareProducts[T simd.Float](s *gemmShape, typ dag.DType, got, want []T) {
	u := kerneltest.UnitRoundoff(typ)
	bound := 2 * float64(s.k) * u * float64(s.k) / 4
	for i := range got {
		if !(math.Abs(float64(got[i])-float64(want[i])) <= bound) {
			panic(fmt.Sprintf("blas: %v: element %d is %v, want %v within %v", s, i, got[i], want[i], bound))
		}
	}
}
