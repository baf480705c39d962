package cpu

import (
	"iter"
	"math"

	"dahl/kernels/calls"
)

// Attention is the extents of a call of an attention, see kernels.attention: of each sample Queries positions attend to Keys. Heads
// of keys each have Group heads of queries, of Width features.
type Attention struct {
	Samples, Queries, Keys int
	Heads, Group, Width    int
	Window, Past           int // of keys that a query sees, and how many of these lie before its own position
	Scale                  float64
	mask                   *calls.Arg // nil means that all keys are seen
	rows                   *calls.Arg // keys of draws, by query; nil means that no weight is dropped
	least                  uint64     // word of a weight that stays,
	times                  float64    // and how many times it counts
}

// AttentionOf reads the extents off the parameters, the queries, and the keys behind them. The operand of the mask may be missing. With a probability of
// dropout the mask is one further, behind the keys of draws.
func AttentionOf(c *calls.Call, q, mask int) Attention {
	k := q + 1
	a := Attention{
		Samples: c.Args[q].Shape[0], Queries: c.Args[q].Shape[1], Keys: c.Args[k].Shape[1],
		Heads: int(c.Params[0]), Group: int(c.Params[1]), Window: int(c.Params[2]), Past: int(c.Params[3]),
	}
	a.Width = c.Args[k].Shape[2] / a.Heads
	a.Scale = 1 / math.Sqrt(float64(a.Width))
	if len(c.Params) > 4 {
		a.rows, a.least, a.times = &c.Args[mask], calls.DropLeast(c.Params[4]), 1/(1-c.Params[4])
		mask++
	}
	if mask < len(c.Args) {
		a.mask = &c.Args[mask]
	}
	return a
}

// ShowsKey reports whether the mask lets queries see a key of a sample.
func (a *Attention) ShowsKey(sample, key int) bool {
	return a.mask == nil || calls.Data[int32](a.mask)[sample*a.mask.Stride[0]+key] != 0
}

// Times is how many times the weight of a key counts for a query.
func (a *Attention) Times(sample, head, query, key int) float64 {
	if a.rows == nil {
		return 1
	}
	times := [1]float64{}
	Draw(a, sample, head, query, key, times[:])
	return times[0]
}

// Draw says how many times the weights of keys from one on count for a query: none or 1/(1-p), see kernels.attention.
func Draw[T calls.Float](a *Attention, sample, head, query, key int, times []T) {
	row := uint64(calls.Data[int64](a.rows)[sample*a.rows.Stride[0]+head*a.rows.Stride[1]+query])
	var words [4]uint32
	for j := range times {
		i := key + j - query + a.Past // in the window
		if j == 0 || i%4 == 0 {
			words = calls.Philox(row, [4]uint32{uint32(i / 4)})
		}
		times[j] = 0
		if uint64(words[i%4]) >= a.least {
			times[j] = T(a.times)
		}
	}
}

// Seen is the keys that a query of a sample sees.
func (a *Attention) Seen(sample, query int) iter.Seq[int] {
	return func(yield func(int) bool) {
		lo, hi := a.KeysOf(query)
		for key := lo; key < hi; key++ {
			if a.ShowsKey(sample, key) && !yield(key) {
				return
			}
		}
	}
}

// KeysOf is the keys that a query sees, as far as no mask hides them. QueriesOf is likewise the queries that see a key.
func (a *Attention) KeysOf(query int) (lo, hi int) {
	return max(0, query-a.Past), min(a.Keys, query-a.Past+a.Window)
}

// QueriesOf is described at KeysOf.
func (a *Attention) QueriesOf(key int) (lo, hi int) {
	return max(0, key+a.Past-a.Window+1), min(a.Queries, key+a.Past+1)
}

// EachHead visits the heads of queries of all samples.
func (a *Attention) EachHead(visit func(sample, head int)) {
	for n := range a.Samples {
		for h := range a.Heads * a.Group {
			visit(n, h)
		}
	}
}

// EachRowOfHeads visits a number of each query and head, operand 0, and the features of two others.
func EachRowOfHeads[T calls.Float](c *calls.Call, visit func(numbers []T, query int, a, b []T)) {
	to := &c.Args[0]
	width := c.Args[1].Shape[2] / to.Shape[1]
	for n := range to.Shape[0] {
		for t := range to.Shape[2] { // features of all heads of a position follow each other
			for h := range to.Shape[1] {
				visit(OfHead[T](to, n, h), t, Features[T](&c.Args[1], n, t, h, width), Features[T](&c.Args[2], n, t, h, width))
			}
		}
	}
}

// Features is the features of a head at a position of a sample.
func Features[T calls.Float](arg *calls.Arg, sample, position, head, width int) []T {
	return calls.Data[T](arg)[sample*arg.Stride[0]+position*arg.Stride[1]+head*width:][:width]
}

// OfHead is a number of each query of a head.
func OfHead[T calls.Float](arg *calls.Arg, sample, head int) []T {
	return calls.Data[T](arg)[sample*arg.Stride[0]+head*arg.Stride[1]:][:arg.Shape[2]]
}
