package cpu

import (
	"math"

	"dahl/dag"
	"dahl/kernels/calls"
	"dahl/kernels/simd"
)

// A dense layer with the loss behind it, block by block of its logits, see kernels.xentSums.

// Rows and classes of a block of logits. The block and its rows of x and w fit a second-level cache.
const xentRows, xentClasses = 256, 128

// Logits are the parts of a call of an operation that computes logits x·wᵀ of classes and uses them at once.
type Logits[T calls.Float] struct {
	level   simd.Level
	x, w, r calls.Map2[T]
	y       []int32
	first   int // the class of the first row of w
	block   []T
	work    []byte // for products in blocks
}

// logitsOf finds the parts of a call: x, w and y from an operand on, and the class of the first row of w.
func logitsOf[T calls.Float](l simd.Level, c *calls.Call, x, r int, first float64) Logits[T] {
	o := Logits[T]{level: l, x: calls.Map2Of[T](&c.Args[x]), w: calls.Map2Of[T](&c.Args[x+1]), y: calls.Data[int32](&c.Args[x+2]), r: calls.Map2Of[T](&c.Args[r]), first: int(first)}
	o.block, o.work = calls.Scratch[T](c.Work, wholeLines(min(xentRows, o.x.Rows)*min(xentClasses, o.w.Rows)))
	return o
}

// LogitsWorkspace is the bytes of a block of logits of an operation with x as operand 1, and of blocks of its largest products.
func LogitsWorkspace(l simd.Level, s *calls.Spec) int64 {
	rows, classes, features := min(xentRows, s.Operands[1].Shape[0]), min(xentClasses, s.Operands[2].Shape[0]), s.Operands[1].Shape[1]
	blocks := max(blocksOf(l, s.Type, rows, classes, features), blocksOf(l, s.Type, rows, features, classes), blocksOf(l, s.Type, classes, features, rows))
	return int64(wholeLines(rows*classes))*s.Type.SizeBytes() + blocks
}

// logits computes the block of some rows and classes, with a row behind the other.
func (o *Logits[T]) logits(rows, classes dag.Range) {
	d := simd.Dot[T]{
		M: rows.Len(), N: classes.Len(), K: o.x.Columns,
		A: o.x.Elems[rows.Lo*o.x.Stride:], ARow: o.x.Stride, B: o.w.Elems[classes.Lo*o.w.Stride:], BRow: o.w.Stride,
		C: o.block, CRow: classes.Len(),
	}
	if !forwardInBlocks(o.level, o.work, &d, false) {
		d.Run(o.level)
	}
}

// own is where in some classes the label of a row is, if it is among them.
func (o *Logits[T]) own(row int, classes dag.Range) (at int, among bool) {
	at = int(o.y[row]) - o.first - classes.Lo
	return at, o.y[row] >= 0 && at >= 0 && at < classes.Len()
}

// XentSumsAt is the variant of xent.sums at a level.
func XentSumsAt[T calls.Float](l simd.Level, c *calls.Call) {
	o := logitsOf[T](l, c, 1, 0, c.Params[0])
	if !c.Args[0].Accumulates() {
		for i := range o.r.Rows {
			copy(o.r.Row(i), []T{T(math.Inf(-1)), 0, 0})
		}
	}
	eachBlock(o.x.Rows, xentRows, func(rows dag.Range) {
		eachBlock(o.w.Rows, xentClasses, func(classes dag.Range) {
			o.logits(rows, classes)
			for i := range rows.Len() {
				z, r := o.block[i*classes.Len():][:classes.Len()], o.r.Row(rows.Lo+i)
				if at, among := o.own(rows.Lo+i, classes); among {
					r[2] += z[at]
				}
				most := max(r[0], simd.RowMaximum(l, z))
				r[1] = T(r[1]*expOf(r[0]-most)) + simd.RowExponentials(l, z, z, 1, most)
				r[0] = most
			}
		})
	})
}

// XentDxAt is the variant of xent.dx at a level.
func XentDxAt[T calls.Float](l simd.Level, c *calls.Call) {
	o, dx := logitsOf[T](l, c, 1, 4, c.Params[1]), calls.Map2Of[T](&c.Args[0])
	batch := batchOf[T](c, 5)
	eachBlock(o.x.Rows, xentRows, func(rows dag.Range) {
		eachBlock(o.w.Rows, xentClasses, func(classes dag.Range) {
			o.gradients(rows, classes, batch)
			p := simd.Product[T]{
				M: rows.Len(), N: dx.Columns, K: classes.Len(), Batch: 1, Accumulate: classes.Lo > 0 || c.Args[0].Accumulates(),
				A: o.block, ARow: classes.Len(), AStep: 1, B: o.w.Elems[classes.Lo*o.w.Stride:], BRow: o.w.Stride,
				C: dx.Elems[rows.Lo*dx.Stride:], CRow: dx.Stride,
			}
			takeBlocks(l, &p, o.work)
			p.Run(l)
		})
	})
}

// XentDwAt is the variant of xent.dw at a level.
func XentDwAt[T calls.Float](l simd.Level, c *calls.Call) {
	o, dw := logitsOf[T](l, c, 1, 4, c.Params[1]), calls.Map2Of[T](&c.Args[0])
	batch := batchOf[T](c, 5)
	eachBlock(o.w.Rows, xentClasses, func(classes dag.Range) {
		eachBlock(o.x.Rows, xentRows, func(rows dag.Range) {
			o.gradients(rows, classes, batch)
			p := simd.Product[T]{
				M: classes.Len(), N: dw.Columns, K: rows.Len(), Batch: 1, Accumulate: rows.Lo > 0 || c.Args[0].Accumulates(),
				A: o.block, ARow: 1, AStep: classes.Len(), B: o.x.Elems[rows.Lo*o.x.Stride:], BRow: o.x.Stride,
				C: dw.Elems[classes.Lo*dw.Stride:], CRow: dw.Stride,
			}
			takeBlocks(l, &p, o.work)
			p.Run(l)
		})
	})
}

// batchOf is the batch by which gradients are divided, and by the operand weight multiplied if there is one.
func batchOf[T calls.Float](c *calls.Call, weight int) float64 {
	if weight < len(c.Args) {
		return c.Params[0] / float64(calls.Data[T](&c.Args[weight])[0])
	}
	return c.Params[0]
}

// gradients replaces the logits of a block by the gradients of the loss.
func (o *Logits[T]) gradients(rows, classes dag.Range, batch float64) {
	o.logits(rows, classes)
	for i := range rows.Len() {
		z, r := o.block[i*classes.Len():][:classes.Len()], o.r.Row(rows.Lo+i)
		if o.y[rows.Lo+i] < 0 {
			clear(z)
			continue
		}
		simd.RowExponentials(o.level, z, z, 1, T(float64(r[0])+math.Log(float64(r[1])*batch)))
		if at, among := o.own(rows.Lo+i, classes); among {
			z[at] -= T(1 / batch)
		}
	}
}

func expOf[T calls.Float](x T) T { return T(math.Exp(float64(x))) }

// eachBlock visits ranges of at most size, in their order.
func eachBlock(of, size int, visit func(dag.Range)) {
	for lo := 0; lo < of; lo += size {
		visit(dag.Range{Lo: lo, Hi: min(lo+size, of)})
	}
}
