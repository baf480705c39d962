package kernels

import (
	"fmt"
	"math"
	"slices"

	"dahl/kernels/calls"
	"dahl/kernels/cpu"
	"dahl/kernels/gpu"
)

// Scaled dot-product attention (Vaswani et al., 2017, arXiv:1706.03762). Of each sample n and each head, with D features in q[t], k[s],
// v[s] and y[t],
//
//	a[t,s] = q[t]·k[s] / √D    p[t,s] = exp(a[t,s] - l[t])    l[t] = log Σ_s exp(a[t,s])    y[t] = Σ_s p[t,s]·v[s]
//
// Query t sees the window of keys s = t+i-past for i < window, as far as there are such keys. Of T positions a causal attention has
// window = T and past = T-1, one in both directions window = 2T-1 and past = T-1, and a sliding one of w keys window = w and
// past = w-1. So a tile of queries reads the keys under its windows as a tile of a convolution does, and past says where the tile begins.
//
// With a mask m, which has a number for each key of a sample, no query sees a key of 0. If a query sees none, its y is 0 and its l is -∞.
//
// Keys and values have heads h, and each of them a group g of heads of queries (Ainslie et al., "GQA", 2023, arXiv:2305.13245). Features of
// queries are h·G·D + g·D + d. Tiles have whole groups.
//
// No T×T numbers are kept. The forward pass keeps l of each query, from which the backward pass computes p again (Dao et al.,
// "FlashAttention", 2022, arXiv:2205.14135). With r[t] = dy[t]·y[t]
//
//	da[t,s] = p[t,s]·(dy[t]·v[s] - r[t])
//	dq[t] = Σ_s da[t,s]·k[s] / √D    dk[s] = Σ_t da[t,s]·q[t] / √D    dv[s] = Σ_t p[t,s]·dy[t]
//
// attention.dx writes all of them by five products for each query and key. Its tiles have all positions. Two other operations compute scores
// twice, seven products in all: attention.dq has tiles of queries, and attention.dkv has tiles of keys. So whole tiles add to no result of another
// one. Sums follow the order of the positions, and both ways give the same bits.
//
// With dropout (operations attention.drop, attention.drop.dx, attention.drop.dq and attention.drop.dkv) a weight p[t,s] counts δ[t,s] times in y, and l is as without. δ is 0 with probability
// p, or else 1/(1-p): word i mod 4 of Philox(key: rows[h,t]; counter: i/4, 0, 0, 0) says which, see dropout.go, where i = s-t+past is the place of the key in the
// window of the query. Nothing of the size T×T is kept, and no cut changes a draw. Then r is the same, and
//
//	da[t,s] = p[t,s]·(δ[t,s]·dy[t]·v[s] - r[t])    dv[s] = Σ_t p[t,s]·δ[t,s]·dy[t]
//
// Tiles may have some of the keys of their queries, and of the queries of their keys. dq, dk and dv are then sums over tiles. From results y1 and l1 of some keys and y2 and l2
// of others attention.merge makes the results of all these keys:
//
//	l = log(exp(l1) + exp(l2))    y = exp(l1 - l)·y1 + exp(l2 - l)·y2
//
// An attention that changes y and l merges its results with the earlier ones. A query that sees no key has l = -∞ and y = 0.

const (
	ofQueries = "n t h:e"
	ofKeys    = "n " + ofKey + " h:d"
	byQuery   = "n h:g t"
	byKey     = "n " + ofKey
	ofKey     = "t+i-past"
)

// masked is whether queries see a key at all.
func masked() Operand { return optional(reads("m", Index, byKey).below("2")) }

// rows are the keys by which queries draw.
func rows() Operand { return reads("rows", Wide, byQuery) }

const attentionDoc = "tiles of queries against tiles of keys, with the greatest score so far"

var attentionParams = []string{"window", "past"}

func attentionWith(k Kernel) Kernel {
	k.Variants[0].WorkspaceBytes = func(s *calls.Spec) int64 { return 16 * int64(s.Operands[4].Shape[2]) }
	k.Options, k.Params, k.Sizes, k.Whole = "heads=1 group=1", attentionParams, "h=heads g=group i=window", "e d g i"
	return k
}

// dropping is an operation of attention with dropout. Its variants find the draws behind the operands that it has without a mask.
func dropping(k Kernel, op string, queries int, onCUDA []calls.Variant) Kernel {
	last := len(k.Operands) - 1
	k.Op, k.Doc, k.Params = op, k.Doc+", with dropout of the weights of keys", append(slices.Clone(attentionParams), "p")
	k.Operands = slices.Insert(slices.Clone(k.Operands), last, rows())
	k.Variants = append(slices.DeleteFunc(slices.Clone(k.Variants), func(v calls.Variant) bool { return v.Blocks }), onCUDA...)
	check, flops := k.Check, k.Flops
	k.Check = func(s *calls.Spec) error {
		if err := check(s); err != nil || s.Param("p") == 1 {
			return err
		}
		return realParam(s, "p", 0, 1)
	}
	k.Flops = func(s *calls.Spec) float64 { return flops(s) + 25*attentionPairs(s, queries, queries+1) }
	return k
}

var (
	attentionDrop    = dropping(attention, "attention.drop", 2, gpu.AttentionDrop)
	attentionDropDx  = dropping(attentionDx, "attention.drop.dx", 4, gpu.AttentionDropDx)
	attentionDropDq  = dropping(attentionDq, "attention.drop.dq", 2, gpu.AttentionDropDq)
	attentionDropDkv = dropping(attentionDkv, "attention.drop.dkv", 3, gpu.AttentionDropDkv)
)

var attention = attentionWith(Kernel{
	Op: "attention", Doc: "y = softmax(q·kᵀ/√D)·v over the windows of the queries, l = logarithms of the sums",
	Operands: []Operand{
		sums("y", ofQueries), sums("l", byQuery),
		reads("q", Real, ofQueries), reads("k", Real, ofKeys), reads("v", Real, ofKeys), masked(),
	},
	Sums: ofKey, Merge: "attention.merge",
	Check: func(s *calls.Spec) error {
		if s.Operands[0].Mode != s.Operands[1].Mode {
			return fmt.Errorf("y has mode %v and l has mode %v, want the same", s.Operands[0].Mode, s.Operands[1].Mode)
		}
		return checkHeads(s, 2, 3)
	},
	Flops: attentionFlops(2, 3, 2),
	Variants: withRef("query by query, in float64", attentionRef[float32], attentionRef[float64],
		atLevels(attentionDoc, cpu.AttentionAt[float32], cpu.AttentionAt[float64], cpu.AttentionWorkspace(3, 1)),
		gpu.Attention),
})

var attentionDx = attentionWith(Kernel{
	Op: "attention.dx", Doc: "dq, dk and dv of attention",
	Operands: []Operand{
		writes("dq", Real, ofQueries), writes("dk", Real, ofKeys), writes("dv", Real, ofKeys),
		reads("dy", Real, ofQueries), reads("q", Real, ofQueries), reads("k", Real, ofKeys), reads("v", Real, ofKeys),
		reads("l", Real, byQuery), reads("r", Real, byQuery), masked(),
	},
	Check: func(s *calls.Spec) error { return checkHeads(s, 4, 5) },
	Flops: attentionFlops(4, 5, 5),
	Variants: withRef("query by query, then key by key, in float64", attentionDxRef[float32], attentionDxRef[float64],
		atLevels(attentionDoc, cpu.AttentionDxAt[float32], cpu.AttentionDxAt[float64], cpu.AttentionWorkspace(5, 2)),
		gpu.AttentionDx),
})

var attentionDq = attentionWith(Kernel{
	Op: "attention.dq", Doc: "dq of attention",
	Operands: []Operand{
		sums("dq", ofQueries),
		reads("dy", Real, ofQueries), reads("q", Real, ofQueries), reads("k", Real, ofKeys), reads("v", Real, ofKeys),
		reads("l", Real, byQuery), reads("r", Real, byQuery), masked(),
	},
	Sums:  ofKey,
	Check: func(s *calls.Spec) error { return checkHeads(s, 2, 3) },
	Flops: attentionFlops(2, 3, 3),
	Variants: withRef("query by query, in float64", attentionDqRef[float32], attentionDqRef[float64],
		atLevels(attentionDoc, cpu.AttentionDqAt[float32], cpu.AttentionDqAt[float64], cpu.AttentionWorkspace(3, 2)),
		gpu.AttentionDq),
})

var attentionDkv = attentionWith(Kernel{
	Op: "attention.dkv", Doc: "dk and dv of attention",
	Operands: []Operand{
		sums("dk", ofKeys), sums("dv", ofKeys),
		reads("dy", Real, ofQueries), reads("q", Real, ofQueries), reads("k", Real, ofKeys), reads("v", Real, ofKeys),
		reads("l", Real, byQuery), reads("r", Real, byQuery), masked(),
	},
	Sums:  "t",
	Check: func(s *calls.Spec) error { return checkHeads(s, 3, 4) },
	Flops: attentionFlops(3, 4, 4),
	Variants: withRef("key by key, in float64", attentionDkvRef[float32], attentionDkvRef[float64],
		atLevels(attentionDoc, cpu.AttentionDkvAt[float32], cpu.AttentionDkvAt[float64], cpu.AttentionWorkspace(4, 2)),
		gpu.AttentionDkv),
})

var attentionAlong = Kernel{
	Op: "attention.along", Doc: "r = Σ dy·y over the features of each head",
	Operands: []Operand{writes("r", Real, byQuery), reads("dy", Real, ofQueries), reads("y", Real, ofQueries)},
	Options:  "heads=1 group=1", Sizes: "h=heads g=group", Whole: "e g",
	Check: func(s *calls.Spec) error {
		if heads, features := s.Operands[0].Shape[1], s.Operands[1].Shape[2]; features%heads > 0 {
			return fmt.Errorf("%d features, want a multiple of %d heads", features, heads)
		}
		return nil
	},
	Flops: perElement(2, 1),
	Variants: withRef("query by query, in float64", attentionAlongRef[float32], attentionAlongRef[float64],
		atLevels("vectors along the features", cpu.AttentionAlongAt[float32], cpu.AttentionAlongAt[float64], nil), gpu.AttentionAlong),
}

var attentionMerge = Kernel{
	Op: "attention.merge", Doc: "y and l of the keys of two calls of attention",
	Operands: []Operand{updates("y", "n t e"), updates("l", "n h t"), reads("y2", Real, "n t e"), reads("l2", Real, "n h t")},
	Whole:    "e h",
	Check: func(s *calls.Spec) error {
		if heads, features := s.Operands[1].Shape[1], s.Operands[0].Shape[2]; features%heads > 0 {
			return fmt.Errorf("%d features, want a multiple of %d heads", features, heads)
		}
		return nil
	},
	Flops:    perElement(1, 0),
	Variants: withRef("query by query, in float64", attentionMergeRef[float32], attentionMergeRef[float64], gpu.AttentionMerge),
}

// checkHeads compares the features of queries and keys.
func checkHeads(s *calls.Spec, q, k int) error {
	group, ok := s.Params.Get("group")
	if !ok {
		group = 1
	}
	if of, want := s.Operands[q].Shape[2], s.Operands[k].Shape[2]*int(group); of != want {
		return fmt.Errorf("queries have %d features, want %d: %g times those of the keys", of, want, group)
	}
	return nil
}

// attentionFlops is the work of some products of D numbers for each query and each key that it sees, and ten operations for an exponential.
func attentionFlops(q, k int, products float64) func(*calls.Spec) float64 {
	return func(s *calls.Spec) float64 {
		width := float64(s.Operands[k].Shape[2]) / attentionHeads.Value(s, "heads")
		return attentionPairs(s, q, k) * (2*products*width + 10)
	}
}

var attentionHeads = calls.ParseOptions("heads=1 group=1")

// attentionPairs counts the keys that the queries of all heads see, as far as no mask hides them.
func attentionPairs(s *calls.Spec, q, k int) float64 {
	a := cpu.Attention{Queries: s.Operands[q].Shape[1], Keys: s.Operands[k].Shape[1], Window: int(s.Param("window")), Past: int(s.Param("past"))}
	pairs := 0
	for t := range a.Queries {
		lo, hi := a.KeysOf(t)
		pairs += max(0, hi-lo)
	}
	return float64(s.Operands[q].Shape[0]*pairs) * attentionHeads.Value(s, "heads") * attentionHeads.Value(s, "group")
}

// product is a dot product in float64.
func product[T calls.Float](a, b []T) (sum float64) {
	for i, v := range a {
		sum += float64(float64(v) * float64(b[i]))
	}
	return sum
}

// mix adds a multiple of features to sums.
func mix[T calls.Float](sums []float64, by float64, features []T) {
	for d, v := range features {
		sums[d] += float64(by * float64(v))
	}
}

// put rounds sums times a factor, and adds them to what was there where a call does.
func put[T calls.Float](to []T, adds bool, factor float64, sums []float64) {
	for d, v := range sums {
		if v = float64(T(factor * v)); adds {
			v += float64(to[d])
		}
		to[d] = T(v)
	}
}

func attentionRef[T calls.Float](c *calls.Call) {
	a := cpu.AttentionOf(c, 2, 5)
	sums, _ := calls.Scratch[float64](c.Work, a.Width)
	a.EachHead(func(n, h int) {
		l := cpu.OfHead[T](&c.Args[1], n, h)
		for t := range a.Queries {
			q := cpu.Features[T](&c.Args[2], n, t, h, a.Width)
			score := func(s int) float64 {
				return a.Scale * product(q, cpu.Features[T](&c.Args[3], n, s, h/a.Group, a.Width))
			}
			y, most, sum := cpu.Features[T](&c.Args[0], n, t, h, a.Width), math.Inf(-1), 0.0
			for s := range a.Seen(n, t) {
				most = max(most, score(s))
			}
			add := func(score, times float64, v []T) {
				e := math.Exp(score - most)
				sum += e
				mix(sums, times*e, v)
			}
			clear(sums)
			if before := float64(l[t]); c.Args[0].Accumulates() && before > math.Inf(-1) {
				most = max(most, before)
				add(before, 1, y)
			}
			for s := range a.Seen(n, t) {
				add(score(s), a.Times(n, h, t, s), cpu.Features[T](&c.Args[4], n, s, h/a.Group, a.Width))
			}
			l[t] = T(most + math.Log(sum))
			put(y, false, 1/max(sum, 1), sums)
		}
	})
}

// attentionDxRef is the references of both parts.
func attentionDxRef[T calls.Float](c *calls.Call) {
	gradientOfQueries[T](c, 3)
	gradientsOfKeys[T](c, 1)
}

func attentionDqRef[T calls.Float](c *calls.Call)  { gradientOfQueries[T](c, 1) }
func attentionDkvRef[T calls.Float](c *calls.Call) { gradientsOfKeys[T](c, 0) }

// gradientOfQueries writes dq, operand 0. dy is the number of dy, behind which the others lie in their order.
func gradientOfQueries[T calls.Float](c *calls.Call, dy int) {
	a := cpu.AttentionOf(c, dy+1, dy+6)
	sums, _ := calls.Scratch[float64](c.Work, a.Width)
	a.EachHead(func(n, h int) {
		l, r := cpu.OfHead[T](&c.Args[dy+4], n, h), cpu.OfHead[T](&c.Args[dy+5], n, h)
		for t := range a.Queries {
			of := func(arg int) []T { return cpu.Features[T](&c.Args[arg], n, t, h, a.Width) }
			gradient, q := of(dy), of(dy+1)
			clear(sums)
			for s := range a.Seen(n, t) {
				k := cpu.Features[T](&c.Args[dy+2], n, s, h/a.Group, a.Width)
				p := math.Exp(float64(a.Scale*product(q, k)) - float64(l[t]))
				along := float64(a.Times(n, h, t, s) * product(gradient, cpu.Features[T](&c.Args[dy+3], n, s, h/a.Group, a.Width)))
				mix(sums, p*(along-float64(r[t])), k)
			}
			put(of(0), c.Args[0].Accumulates(), a.Scale, sums)
		}
	})
}

// gradientsOfKeys writes dk and dv. dk is the number of dk, behind which the others lie in their order.
func gradientsOfKeys[T calls.Float](c *calls.Call, dk int) {
	a := cpu.AttentionOf(c, dk+3, dk+8)
	keys, rest := calls.Scratch[float64](c.Work, a.Width)
	values, _ := calls.Scratch[float64](rest, a.Width)
	for n := range a.Samples {
		for h := range a.Heads {
			for s := range a.Keys {
				of := func(arg int) []T { return cpu.Features[T](&c.Args[dk+arg], n, s, h, a.Width) }
				k, v := of(4), of(5)
				clear(keys)
				clear(values)
				lo, hi := a.QueriesOf(s)
				if !a.ShowsKey(n, s) {
					hi = lo
				}
				for g := h * a.Group; g < (h+1)*a.Group; g++ {
					l, r := cpu.OfHead[T](&c.Args[dk+6], n, g), cpu.OfHead[T](&c.Args[dk+7], n, g)
					for t := lo; t < hi; t++ {
						dy, q := cpu.Features[T](&c.Args[dk+2], n, t, g, a.Width), cpu.Features[T](&c.Args[dk+3], n, t, g, a.Width)
						p := math.Exp(float64(a.Scale*product(q, k)) - float64(l[t]))
						times := a.Times(n, g, t, s)
						mix(keys, p*(float64(times*product(dy, v))-float64(r[t])), q)
						mix(values, times*p, dy)
					}
				}
				put(of(0), c.Args[dk].Accumulates(), a.Scale, keys)
				put(of(1), c.Args[dk+1].Accumulates(), 1, values)
			}
		}
	}
}

func attentionAlongRef[T calls.Float](c *calls.Call) {
	cpu.EachRowOfHeads(c, func(r []T, t int, dy, y []T) { r[t] = T(product(dy, y)) })
}

func attentionMergeRef[T calls.Float](c *calls.Call) {
	y, heads := &c.Args[0], c.Args[1].Shape[1]
	width := y.Shape[2] / heads
	for n := range y.Shape[0] {
		for h := range heads {
			l, other := cpu.OfHead[T](&c.Args[1], n, h), cpu.OfHead[T](&c.Args[3], n, h)
			for t := range l {
				most := max(float64(l[t]), float64(other[t]))
				if math.IsInf(most, -1) {
					continue
				}
				a, b := math.Exp(float64(l[t])-most), math.Exp(float64(other[t])-most)
				l[t] = T(most + math.Log(a+b))
				to, from := cpu.Features[T](y, n, t, h, width), cpu.Features[T](&c.Args[2], n, t, h, width)
				a, b = a/(a+b), b/(a+b)
				for d, v := range from {
					to[d] = T(float64(a*float64(to[d])) + float64(b*float64(v)))
				}
			}
		}
	}
}
