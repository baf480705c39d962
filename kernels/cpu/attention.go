package cpu

import (
	"math"

	"dahl/kernels/calls"
	"dahl/kernels/simd"
)

// Attention by tiles of queries against tiles of keys, each a product of matrices whose scores stay in a cache. Keys and values
// of a head are transposed once, so that the scores of a row lie behind each other.

// Extents of a tile of scores: 32 KB of them in float32. Where queries see other keys than those behind them, attentionBand of them are multiplied with
// what one of them sees.
const (
	attentionQueries = 32
	attentionBand    = 16
	attentionKeys    = 256
)

// attentionCall is a call of one of the operations, with its workspace.
type attentionCall[T calls.Float] struct {
	Attention
	level  simd.Level
	call   *calls.Call
	q, k   int // the operands; values are behind the keys
	turned [2][]T
	scores [2][]T  // with attentionKeys in a row
	most   []T     // of each query of a tile: the greatest score so far
	sums   []T     // and the sum
	times  []T     // how many times the weights of a row count, where some are dropped
	hidden []int32 // the columns of a tile that the mask hides
}

// AttentionWorkspace is the bytes for some matrices of transposed keys, operand k, and as many tiles.
func AttentionWorkspace(k, matrices int) func(*calls.Spec) int64 {
	heads := calls.ParseOptions("heads=1")
	return func(s *calls.Spec) int64 {
		turned := s.Operands[k].Shape[1] * s.Operands[k].Shape[2] / int(heads.Value(s, "heads"))
		rows := 2 * attentionQueries
		if _, drops := s.Params.Get("p"); drops {
			rows += attentionKeys
		}
		return int64(matrices*(turned+attentionQueries*attentionKeys)+rows)*s.Type.SizeBytes() + 4*attentionKeys
	}
}

func newAttentionCall[T calls.Float](l simd.Level, c *calls.Call, q, mask, matrices int) attentionCall[T] {
	a := attentionCall[T]{Attention: AttentionOf(c, q, mask), level: l, call: c, q: q, k: q + 1}
	work := c.Work
	for i := range matrices {
		a.turned[i], work = calls.Scratch[T](work, a.Keys*a.Width)
		a.scores[i], work = calls.Scratch[T](work, attentionQueries*attentionKeys)
	}
	a.most, work = calls.Scratch[T](work, attentionQueries)
	a.sums, work = calls.Scratch[T](work, attentionQueries)
	if a.rows != nil {
		a.times, work = calls.Scratch[T](work, attentionKeys)
	}
	a.hidden, _ = calls.Scratch[int32](work, attentionKeys)
	return a
}

// rest is the features of a head from a position on, and their distance from one position to the next.
func (a *attentionCall[T]) rest(arg, n, position, head int) ([]T, int) {
	o := &a.call.Args[arg]
	return calls.Data[T](o)[n*o.Stride[0]+position*o.Stride[1]+head*a.Width:], o.Stride[1]
}

// turn transposes the keys, operand k, or the values of a head.
func (a *attentionCall[T]) turn(which, n, head int) {
	t := simd.Transpose[T]{Rows: a.Keys, Columns: a.Width, To: a.turned[which], ToRow: a.Keys}
	t.From, t.FromRow = a.rest(a.k+which, n, 0, head)
	t.Run(a.level)
}

// attentionTile is queries from first and keys from lo, whose scores begin at a position.
type attentionTile struct{ first, rows, lo, columns, at int }

// eachBand visits the bands of a tile with the keys that one of the queries sees, or with all where they see none.
func (a *attentionCall[T]) eachBand(t attentionTile, visit func(attentionTile)) {
	for i := 0; i < t.rows; i += attentionBand {
		rows := min(attentionBand, t.rows-i)
		lo, _ := a.seen(t, i)
		_, hi := a.seen(t, i+rows-1)
		if lo >= hi {
			lo, hi = 0, t.columns
		}
		visit(attentionTile{t.first + i, rows, t.lo + lo, hi - lo, i*attentionKeys + lo})
	}
}

// product fills the scores of a tile with products of an operand of queries and the transposed keys or values, as far as a band sees them.
func (a *attentionCall[T]) product(which, arg, n, head int, t attentionTile) {
	a.eachBand(t, func(t attentionTile) {
		p := simd.Product[T]{M: t.rows, N: t.columns, K: a.Width, Batch: 1, AStep: 1, B: a.turned[which][t.lo:], BRow: a.Keys, C: a.scores[which][t.at:], CRow: attentionKeys}
		p.A, p.ARow = a.rest(arg, n, t.first, head)
		p.Run(a.level)
	})
}

// mix adds to an operand of queries the products of weights and features of keys.
func (a *attentionCall[T]) mix(which, to, from, n, head int, t attentionTile, add bool) {
	a.eachBand(t, func(t attentionTile) {
		p := simd.Product[T]{M: t.rows, N: a.Width, K: t.columns, Batch: 1, AStep: 1, A: a.scores[which][t.at:], ARow: attentionKeys, Accumulate: add}
		p.B, p.BRow = a.rest(from, n, t.lo, head/a.Group)
		p.C, p.CRow = a.rest(to, n, t.first, head)
		p.Run(a.level)
	})
}

// mixBack adds to an operand of keys the products of weights and features of queries: of all with the keys that the first band sees or has passed, and of those behind
// it with the others.
func (a *attentionCall[T]) mixBack(which, to, from, n, head int, t attentionTile) {
	_, seen := a.seen(t, min(attentionBand, t.rows)-1)
	a.mixAll(which, to, from, n, head, attentionTile{t.first, t.rows, t.lo, seen, 0})
	a.mixAll(which, to, from, n, head, attentionTile{t.first + attentionBand, t.rows - attentionBand, t.lo + seen, t.columns - seen, attentionBand*attentionKeys + seen})
}

// mixAll is mixBack for all queries and keys of a tile, which may have none.
func (a *attentionCall[T]) mixAll(which, to, from, n, head int, t attentionTile) {
	if t.columns <= 0 || t.rows <= 0 {
		return
	}
	p := simd.Product[T]{M: t.columns, N: a.Width, K: t.rows, Batch: 1, A: a.scores[which][t.at:], ARow: 1, AStep: attentionKeys, Accumulate: true}
	p.B, p.BRow = a.rest(from, n, t.first, head)
	p.C, p.CRow = a.rest(to, n, t.lo, head/a.Group)
	p.Run(a.level)
}

// seen is the keys of a tile that a row's query sees, as columns.
func (a *attentionCall[T]) seen(t attentionTile, row int) (lo, hi int) {
	lo, hi = a.KeysOf(t.first + row)
	lo, hi = max(0, lo-t.lo), min(t.columns, hi-t.lo)
	return min(lo, t.columns), max(hi, min(lo, t.columns))
}

// row is the scores of a row of a tile.
func (a *attentionCall[T]) row(which, row int) []T { return a.scores[which][row*attentionKeys:] }

// hide sets to 0 the columns that a row does not see.
func (a *attentionCall[T]) hide(which, row, lo, hi int, t attentionTile) {
	r := a.row(which, row)
	clear(r[:lo])
	clear(r[hi:t.columns])
}

// findHidden lists the columns of a tile whose keys the mask hides.
func (a *attentionCall[T]) findHidden(n int, t attentionTile) {
	a.hidden = a.hidden[:0]
	for i := range t.columns {
		if !a.ShowsKey(n, t.lo+i) {
			a.hidden = append(a.hidden, int32(i))
		}
	}
}

// putHidden gives a row a number in the columns that the mask hides.
func (a *attentionCall[T]) putHidden(which, row int, number T) {
	scores := a.row(which, row)
	for _, i := range a.hidden {
		scores[i] = number
	}
}

// draw finds how many times the weights of a row count, from one column to another.
func (a *attentionCall[T]) draw(n, head int, t attentionTile, row, lo, hi int) {
	if a.rows != nil {
		Draw(&a.Attention, n, head, t.first+row, t.lo+lo, a.times[:hi-lo])
	}
}

// drop multiplies numbers of a row by these.
func (a *attentionCall[T]) drop(row []T) {
	for i, times := range a.times[:min(len(row), len(a.times))] {
		row[i] *= times
	}
}

// eachTile visits the tiles of scores with some queries in which one sees a key, along the keys.
func (a *attentionCall[T]) eachTile(first, rows int, visit func(t attentionTile)) {
	lo, _ := a.KeysOf(first)
	_, hi := a.KeysOf(first + rows - 1)
	for at := lo / attentionKeys * attentionKeys; at < hi && lo < hi; at += attentionKeys {
		from := max(at, lo)
		visit(attentionTile{first, rows, from, min(at+attentionKeys, hi) - from, 0})
	}
}

// eachQueries visits the heads of all samples, each with its tiles of queries. turn is called before the first of a head of keys.
func (a *attentionCall[T]) eachQueries(turn func(n, head int), visit func(n, head, first, rows int)) {
	a.EachHead(func(n, head int) {
		if head%a.Group == 0 {
			turn(n, head/a.Group)
		}
		for first := 0; first < a.Queries; first += attentionQueries {
			visit(n, head, first, min(attentionQueries, a.Queries-first))
		}
	})
}

// AttentionAt is the variant of attention at a level.
func AttentionAt[T calls.Float](l simd.Level, c *calls.Call) {
	a := newAttentionCall[T](l, c, 2, 5, 1)
	a.eachQueries(func(n, head int) { a.turn(0, n, head) }, func(n, head, first, rows int) {
		logs, begun := OfHead[T](&c.Args[1], n, head)[first:], c.Args[0].Accumulates()
		for i := range rows {
			if a.most[i], a.sums[i] = T(math.Inf(-1)), 0; begun && logs[i] > a.most[i] {
				a.most[i], a.sums[i] = logs[i], 1 // what was there is a tile with this sum
			}
		}
		a.eachTile(first, rows, func(t attentionTile) {
			a.product(0, a.q, n, head, t)
			a.findHidden(n, t)
			for i := range rows {
				a.weigh(n, head, t, i)
			}
			a.mix(0, 0, a.k+1, n, head, t, begun)
			begun = true
		})
		for i := range rows {
			y := Features[T](&c.Args[0], n, first+i, head, a.Width)
			if a.sums[i] == 0 { // it has seen no key
				clear(y)
			} else {
				scaleRow(y, 1/a.sums[i])
			}
			logs[i] = a.most[i] + T(math.Log(float64(a.sums[i])))
		}
	})
}

// weigh makes weights of a row of scores, and corrects what earlier tiles have left where a score is greater than all before.
func (a *attentionCall[T]) weigh(n, head int, t attentionTile, i int) {
	lo, hi := a.seen(t, i)
	a.hide(0, i, lo, hi, t)
	if lo == hi {
		return
	}
	a.putHidden(0, i, T(math.Inf(-1)))
	row, scale := a.row(0, i)[lo:hi], T(a.Scale)
	most := max(a.most[i], scale*simd.RowMaximum(a.level, row))
	if math.IsInf(float64(most), -1) { // all are hidden
		clear(row)
		a.putHidden(0, i, 0)
		return
	}
	sum := simd.RowExponentials(a.level, row, row, scale, most) // what is hidden adds too little to change it
	a.putHidden(0, i, 0)
	if old := a.most[i]; old < most && a.sums[i] > 0 {
		less := T(math.Exp(float64(old - most)))
		a.sums[i] *= less
		scaleRow(Features[T](&a.call.Args[0], n, t.first+i, head, a.Width), less)
	}
	a.most[i], a.sums[i] = most, a.sums[i]+sum
	a.draw(n, head, t, i, lo, hi)
	a.drop(row)
}

func scaleRow[T calls.Float](row []T, by T) {
	for d := range row {
		row[d] *= by
	}
}

// AttentionAlongAt is the variant of attention.along.
func AttentionAlongAt[T calls.Float](l simd.Level, c *calls.Call) {
	d := simd.Dot[T]{M: 1, N: 1}
	EachRowOfHeads(c, func(r []T, t int, dy, y []T) {
		d.K, d.A, d.B, d.C = len(y), dy, y, r[t:][:1]
		d.Run(l)
	})
}

// AttentionDqAt is the variant of attention.dq.
func AttentionDqAt[T calls.Float](l simd.Level, c *calls.Call) {
	a := newAttentionCall[T](l, c, 2, 7, 2)
	turn := func(n, head int) {
		a.turn(0, n, head)
		a.turn(1, n, head)
	}
	a.eachQueries(turn, func(n, head, first, rows int) {
		logs, along := OfHead[T](&c.Args[5], n, head)[first:][:rows], OfHead[T](&c.Args[6], n, head)[first:][:rows]
		for i := range rows {
			begin(&c.Args[0], Features[T](&c.Args[0], n, first+i, head, a.Width))
		}
		a.eachTile(first, rows, func(t attentionTile) {
			a.gradient(n, head, t, 1, logs, along)
			a.mix(1, 0, a.k, n, head, t, true)
		})
	})
}

// begin clears features to which a call does not add.
func begin[T calls.Float](arg *calls.Arg, features []T) {
	if !arg.Accumulates() {
		clear(features)
	}
}

// gradient fills a tile with weights and with the gradients of scores. dy is the operand of the gradient of the output.
func (a *attentionCall[T]) gradient(n, head int, t attentionTile, dy int, logs, along []T) {
	a.product(0, a.q, n, head, t)
	a.product(1, dy, n, head, t)
	a.findHidden(n, t)
	for i := range t.rows {
		lo, hi := a.seen(t, i)
		a.hide(0, i, lo, hi, t)
		a.hide(1, i, lo, hi, t)
		if lo < hi {
			weights, gradients := a.row(0, i)[lo:hi], a.row(1, i)[lo:hi]
			a.draw(n, head, t, i, lo, hi)
			a.drop(gradients)
			simd.RowGradient(a.level, weights, gradients, T(a.Scale), logs[i], along[i])
			a.drop(weights)
		}
		a.putHidden(0, i, 0)
		a.putHidden(1, i, 0)
	}
}

// AttentionDkvAt is the variant of attention.dkv.
func AttentionDkvAt[T calls.Float](l simd.Level, c *calls.Call) { attentionByKeys[T](l, c, 0) }

// AttentionDxAt is the variant of attention.dx, whose tiles of scores also give their part of dq.
func AttentionDxAt[T calls.Float](l simd.Level, c *calls.Call) { attentionByKeys[T](l, c, 1) }

// attentionByKeys visits the tiles of a head of keys. Keys meet the queries in their order, and queries the keys. dk is the number of the operand dk,
// and with 1 operand 0 is dq.
func attentionByKeys[T calls.Float](l simd.Level, c *calls.Call, dk int) {
	a := newAttentionCall[T](l, c, dk+3, dk+8, 2)
	dv, dy := dk+1, dk+2
	for n := range a.Samples {
		for head := range a.Heads {
			a.turn(0, n, head)
			a.turn(1, n, head)
			for s := range a.Keys {
				begin(&c.Args[dk], Features[T](&c.Args[dk], n, s, head, a.Width))
				begin(&c.Args[dv], Features[T](&c.Args[dv], n, s, head, a.Width))
			}
			for g := head * a.Group; g < (head+1)*a.Group; g++ {
				logs, along := OfHead[T](&c.Args[dk+6], n, g), OfHead[T](&c.Args[dk+7], n, g)
				for first := 0; first < a.Queries; first += attentionQueries {
					rows := min(attentionQueries, a.Queries-first)
					for i := range rows * dk {
						clear(Features[T](&c.Args[0], n, first+i, g, a.Width))
					}
					a.eachTile(first, rows, func(t attentionTile) {
						a.gradient(n, g, t, dy, logs[first:], along[first:])
						if dk > 0 {
							a.mix(1, 0, a.k, n, g, t, true)
						}
						a.mixBack(1, dk, a.q, n, g, t)
						a.mixBack(0, dv, dy, n, g, t)
					})
				}
			}
		}
	}
}
