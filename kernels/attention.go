package kernels

import (
	"fmt"
	"math"

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
// One operation has tiles of queries and writes dq and r, another one has tiles of keys. So no tile adds to a result of another one, and
// sums follow the order of the positions.

const (
	ofQueries = "n t h:e"
	ofKeys    = "n t+i-past h:d"
	byQuery   = "n h:g t"
	byKey     = "n t+i-past"
)

// masked is whether queries see a key at all.
func masked() Operand { return optional(reads("m", Index, byKey).below("2")) }

const attentionDoc = "tiles of queries against tiles of keys, with the greatest score so far"

var attentionParams = []string{"window", "past"}

func attentionWith(k Kernel) Kernel {
	k.Variants[0].WorkspaceBytes = func(s *calls.Spec) int64 { return 16 * int64(s.Operands[4].Shape[2]) }
	k.Options, k.Params, k.Sizes, k.Whole = "heads=1 group=1", attentionParams, "h=heads g=group i=window", "e d g i"
	return k
}

var attention = attentionWith(Kernel{
	Op: "attention", Doc: "y = softmax(q·kᵀ/√D)·v over the windows of the queries, l = logarithms of the sums",
	Operands: []Operand{
		writes("y", Real, ofQueries), writes("l", Real, byQuery),
		reads("q", Real, ofQueries), reads("k", Real, ofKeys), reads("v", Real, ofKeys), masked(),
	},
	Check: func(s *calls.Spec) error {
		if err := checkHeads(s, 2, 3); err != nil {
			return err
		}
		queries, keys, window, past := s.Operands[2].Shape[1], s.Operands[3].Shape[1], int(s.Param("window")), int(s.Param("past"))
		if past >= window || queries-past > keys {
			return fmt.Errorf("a query sees none of %d keys: queries are %d, window %d and past %d", keys, queries, window, past)
		}
		return nil
	},
	Flops: attentionFlops(2, 3, 2),
	Variants: withRef("query by query, in float64", attentionRef[float32], attentionRef[float64],
		atLevels(attentionDoc, cpu.AttentionAt[float32], cpu.AttentionAt[float64], cpu.AttentionWorkspace(3, 1)),
		gpu.Attention),
})

var attentionDq = attentionWith(Kernel{
	Op: "attention.dq", Doc: "dq of attention, r = rows of dy·y",
	Operands: []Operand{
		writes("dq", Real, ofQueries), writes("r", Real, byQuery),
		reads("dy", Real, ofQueries), reads("y", Real, ofQueries), reads("q", Real, ofQueries), reads("k", Real, ofKeys), reads("v", Real, ofKeys),
		reads("l", Real, byQuery), masked(),
	},
	Check: func(s *calls.Spec) error { return checkHeads(s, 4, 5) },
	Flops: attentionFlops(4, 5, 3),
	Variants: withRef("query by query, in float64", attentionDqRef[float32], attentionDqRef[float64],
		atLevels(attentionDoc, cpu.AttentionDqAt[float32], cpu.AttentionDqAt[float64], cpu.AttentionWorkspace(5, 2)),
		gpu.AttentionDq),
})

var attentionDkv = attentionWith(Kernel{
	Op: "attention.dkv", Doc: "dk and dv of attention",
	Operands: []Operand{
		writes("dk", Real, ofKeys), writes("dv", Real, ofKeys),
		reads("dy", Real, ofQueries), reads("q", Real, ofQueries), reads("k", Real, ofKeys), reads("v", Real, ofKeys),
		reads("l", Real, byQuery), reads("r", Real, byQuery), masked(),
	},
	Check: func(s *calls.Spec) error { return checkHeads(s, 3, 4) },
	Flops: attentionFlops(3, 4, 4),
	Variants: withRef("key by key, in float64", attentionDkvRef[float32], attentionDkvRef[float64],
		atLevels(attentionDoc, cpu.AttentionDkvAt[float32], cpu.AttentionDkvAt[float64], cpu.AttentionWorkspace(4, 2)),
		gpu.AttentionDkv),
})

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
		a := cpu.Attention{Queries: s.Operands[q].Shape[1], Keys: s.Operands[k].Shape[1], Window: int(s.Param("window")), Past: int(s.Param("past"))}
		pairs, heads := 0, calls.ParseOptions("heads=1 group=1")
		for t := range a.Queries {
			lo, hi := a.KeysOf(t)
			pairs += max(0, hi-lo)
		}
		width := float64(s.Operands[k].Shape[2]) / heads.Value(s, "heads")
		return float64(s.Operands[q].Shape[0]*pairs) * heads.Value(s, "heads") * heads.Value(s, "group") * (2*products*width + 10)
	}
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

// put rounds sums times a factor.
func put[T calls.Float](to []T, factor float64, sums []float64) {
	for d, v := range sums {
		to[d] = T(factor * v)
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
			most, sum := math.Inf(-1), 0.0
			for s := range a.Seen(n, t) {
				most = max(most, score(s))
			}
			clear(sums)
			for s := range a.Seen(n, t) {
				e := math.Exp(score(s) - most)
				sum += e
				mix(sums, e, cpu.Features[T](&c.Args[4], n, s, h/a.Group, a.Width))
			}
			l[t] = T(most + math.Log(sum))
			if sum == 0 {
				sum = 1
			}
			put(cpu.Features[T](&c.Args[0], n, t, h, a.Width), 1/sum, sums)
		}
	})
}

func attentionDqRef[T calls.Float](c *calls.Call) {
	a := cpu.AttentionOf(c, 4, 8)
	sums, _ := calls.Scratch[float64](c.Work, a.Width)
	a.EachHead(func(n, h int) {
		r, l := cpu.OfHead[T](&c.Args[1], n, h), cpu.OfHead[T](&c.Args[7], n, h)
		for t := range a.Queries {
			of := func(arg int) []T { return cpu.Features[T](&c.Args[arg], n, t, h, a.Width) }
			dy, q := of(2), of(4)
			along := product(dy, of(3))
			r[t] = T(along)
			clear(sums)
			for s := range a.Seen(n, t) {
				k := cpu.Features[T](&c.Args[5], n, s, h/a.Group, a.Width)
				p := math.Exp(float64(a.Scale*product(q, k)) - float64(l[t]))
				mix(sums, p*(product(dy, cpu.Features[T](&c.Args[6], n, s, h/a.Group, a.Width))-along), k)
			}
			put(of(0), a.Scale, sums)
		}
	})
}

func attentionDkvRef[T calls.Float](c *calls.Call) {
	a := cpu.AttentionOf(c, 3, 8)
	keys, rest := calls.Scratch[float64](c.Work, a.Width)
	values, _ := calls.Scratch[float64](rest, a.Width)
	for n := range a.Samples {
		for h := range a.Heads {
			for s := range a.Keys {
				of := func(arg int) []T { return cpu.Features[T](&c.Args[arg], n, s, h, a.Width) }
				k, v := of(4), of(5)
				clear(keys)
				clear(values)
				lo, hi := a.QueriesOf(s)
				if !a.ShowsKey(n, s) {
					hi = lo
				}
				for g := h * a.Group; g < (h+1)*a.Group; g++ {
					l, r := cpu.OfHead[T](&c.Args[6], n, g), cpu.OfHead[T](&c.Args[7], n, g)
					for t := lo; t < hi; t++ {
						dy, q := cpu.Features[T](&c.Args[2], n, t, g, a.Width), cpu.Features[T](&c.Args[3], n, t, g, a.Width)
						p := math.Exp(float64(a.Scale*product(q, k)) - float64(l[t]))
						mix(keys, p*(product(dy, v)-float64(r[t])), q)
						mix(values, p, dy)
					}
				}
				put(of(0), a.Scale, keys)
				put(of(1), 1, values)
			}
		}
	}
}
