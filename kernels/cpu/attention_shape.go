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
}

// AttentionOf reads the extents off the parameters, the queries, and the keys behind them. The operand of the mask may be missing.
func AttentionOf(c *calls.Call, q, mask int) Attention {
	k := q + 1
	a := Attention{
		Samples: c.Args[q].Shape[0], Queries: c.Args[q].Shape[1], Keys: c.Args[k].Shape[1],
		Heads: int(c.Params[0]), Group: int(c.Params[1]), Window: int(c.Params[2]), Past: int(c.Params[3]),
	}
	a.Width = c.Args[k].Shape[2] / a.Heads
	a.Scale = 1 / math.Sqrt(float64(a.Width))
	if mask < len(c.Args) {
		a.mask = &c.Args[mask]
	}
	return a
}

// ShowsKey reports whether the mask lets queries see a key of a sample.
func (a *Attention) ShowsKey(sample, key int) bool {
	return a.mask == nil || calls.Data[int32](a.mask)[sample*a.mask.Stride[0]+key] != 0
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

// Features is the features of a head at a position of a sample.
func Features[T calls.Float](arg *calls.Arg, sample, position, head, width int) []T {
	return calls.Data[T](arg)[sample*arg.Stride[0]+position*arg.Stride[1]+head*width:][:width]
}

// OfHead is a number of each query of a head.
func OfHead[T calls.Float](arg *calls.Arg, sample, head int) []T {
	return calls.Data[T](arg)[sample*arg.Stride[0]+head*arg.Stride[1]:][:arg.Shape[2]]
}
