package simd

import "unsafe"

// Softmax computes softmax of rows of logits, as kernels.softmaxXent defines it. It takes some
// rows at a time, one in each element of a vector. It gives the first maximum m and its class,
// the sum s of exp(z - m), and on request the gradient (exp(z - m)/s - Share - Keep·[class = label])/Batch.
//
// Exponentials are computed in T, with a relative error below 3 units of 2⁻⁵³, or 2⁻²⁴ in float32: the argument is reduced by n·ln 2 in two parts, the
// first exact and the second rounded once, 0.35 units since |r| ≤ 0.35; the polynomial
// of degree 13, or 7, leaves out 0.1 units, and of its roundings the last is 1 unit, the one
// before 0.6 and all others together 0.15.
type Softmax[T Float] struct {
	Classes     int
	ZRow, DZRow int // from a row to the next
	Batch       T
	Keep, Share T   // of the target: 1 and 0 without label smoothing
	Work        []T // of SoftmaxWork elements
}

// SoftmaxWork is the number of elements of workspace for some classes.
func SoftmaxWork[T Float](classes int) int {
	return (classes + softmaxRest) * 64 / size[T](nil)
}

// softmaxRest is the number of vectors behind the vectors of classes: maxima, their
// classes, sums and labels.
const softmaxRest = 4

// Block computes as many rows as there are labels, at most [SoftmaxRows]. It returns maxima,
// their classes and sums, which lie in the workspace. dz is nil where no gradient is wanted. The
// level must have assembly.
func (s *Softmax[T]) Block(l Level, dz, z []T, labels []int32) (most, class, sum []T) {
	rows, lanes := len(labels), SoftmaxRows[T](l)
	if rows < 1 || rows > lanes || s.Classes < 1 || len(s.Work) < SoftmaxWork[T](s.Classes) {
		panic("simd: softmax of no rows, of too many, or without workspace")
	}
	block := s.Work[:s.Classes*lanes]
	rest := s.Work[len(block):][:softmaxRest*lanes]
	clear(s.Work[:len(block)+len(rest)]) // rows beyond the last are zeros
	in := Transpose[T]{Rows: rows, Columns: s.Classes, To: block, From: z, ToRow: lanes, FromRow: s.ZRow}
	in.Run(l)
	for i, y := range labels {
		rest[3*lanes+i] = T(y)
	}
	s.run(l, block, rest, dz != nil)
	if dz != nil {
		out := Transpose[T]{Rows: s.Classes, Columns: rows, To: dz, From: block, ToRow: s.DZRow, FromRow: lanes}
		out.Run(l)
	}
	return rest[:rows], rest[lanes:][:rows], rest[2*lanes:][:rows]
}

// softmaxArgs is one call of the assembly. The order of the fields is known to
// gen/softmax.go.
type softmaxArgs struct {
	block, rest unsafe.Pointer // vectors of classes, and behind them
	classes     int
	gradient    int
	batch, one  uint64
	keep, share uint64
	constants   unsafe.Pointer
}

// SoftmaxRows is the number of rows of a block, 0 where there is no assembly.
func SoftmaxRows[T Float](l Level) int {
	if l == Go {
		return 0
	}
	return l.bytes() / size[T](nil)
}

func (s *Softmax[T]) run(l Level, block, rest []T, gradient bool) {
	a := softmaxArgs{
		block: pointer(block), rest: pointer(rest), classes: s.Classes,
		batch: bits(s.Batch), one: bits(T(1)), keep: bits(s.Keep), share: bits(s.Share), constants: pointer(constants),
	}
	if size(block) == 4 {
		a.constants = pointer(singles)
	}
	if gradient {
		a.gradient = 1
	}
	softmax.call(l, size(block), &a)
}
