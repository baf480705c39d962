package kerneltest

import (
	"math"

	"dahl/dag"
)

// AttentionParams are the parameters of an attention of one head.
func AttentionParams(window, past float64) dag.Params {
	return dag.Params{{Name: "window", Value: window}, {Name: "past", Value: past}}
}

// HeadParams are the parameters of an attention of several heads of keys, each with a group of heads of queries.
func HeadParams(heads, group, window, past float64) dag.Params {
	return append(dag.Params{{Name: "heads", Value: heads}, {Name: "group", Value: group}}, AttentionParams(window, past)...)
}

// attentionCases have scores of 0, so that the weights of keys are equal, or 1 where l is 0. Logarithms are not exact.
func attentionCases() []HandCase {
	key := [][]int{{1, 2, 4}, {1, 1, 4}, {1, 1, 1}}
	return []HandCase{
		{
			// The first query sees 2, the second one the mean of 2 and 6.
			Name: "keys up to the query", Op: "attention", Params: AttentionParams(2, 1),
			Shapes: [][]int{{1, 2, 1}, {1, 1, 2}, {1, 2, 1}, {1, 2, 1}, {1, 2, 1}},
			In:     [][]float64{nil, nil, {0, 0}, {5, 7}, {2, 6}},
			Want:   [][]float64{{2, 4}, nil, nil, nil, nil},
		},
		{
			// Two heads of keys with two heads of queries each: the means of 2 and 6, and of 10 and 30.
			Name: "groups of heads", Op: "attention", Params: HeadParams(2, 2, 3, 1),
			Shapes: [][]int{{1, 2, 4}, {1, 4, 2}, {1, 2, 4}, {1, 2, 2}, {1, 2, 2}},
			In:     [][]float64{nil, nil, {1, 2, 3, 4, 5, 6, 7, 8}, {0, 0, 0, 0}, {2, 10, 6, 30}},
			Want:   [][]float64{{4, 4, 20, 20, 4, 4, 20, 20}, nil, nil, nil, nil},
		},
		{
			// The second sample's keys are hidden but for the last one, and the third sample's are all.
			Name: "keys that are masked", Op: "attention", Params: AttentionParams(2, 0),
			Shapes: [][]int{{3, 1, 1}, {3, 1, 1}, {3, 1, 1}, {3, 2, 1}, {3, 2, 1}, {3, 2}},
			In:     [][]float64{nil, nil, {0, 0, 0}, {5, 7, 1, 3, 2, 9}, {2, 6, 3, 8, 4, 1}, {1, 1, 0, 1, 0, 0}},
			Want:   [][]float64{{4, 8, 0}, nil, nil, nil, nil, nil},
		},
		{
			// At position 0 nothing is turned.
			Name: "position 0", Op: "rotary.table", Params: dag.Params{{Name: "base", Value: 100}},
			Shapes: [][]int{{1, 4}}, In: [][]float64{nil}, Want: [][]float64{{1, 1, 0, 0}},
		},
		{
			// Two heads of one pair each, by the angle with a cosine of 0.5 and a sine of 2, as far as the operation knows.
			Name: "two heads", Op: "rotary", Params: dag.Params{{Name: "heads", Value: 2}, {Name: "back", Value: 0}},
			Shapes: [][]int{{1, 1, 4}, {1, 1, 4}, {1, 2}},
			In:     [][]float64{nil, {2, 4, 6, 8}, {0.5, 2}},
			Want:   [][]float64{{1 - 8, 2 + 4, 3 - 16, 4 + 12}, nil, nil},
		},
		{
			Name: "back", Op: "rotary", Params: dag.Params{{Name: "back", Value: 1}},
			Shapes: [][]int{{1, 1, 2}, {1, 1, 2}, {1, 2}},
			In:     [][]float64{nil, {2, 4}, {0.5, 2}},
			Want:   [][]float64{{1 + 8, 2 - 4}, nil, nil},
		},
		{
			// r = 3, so that da = 5 - 3 and 7 - 3: half of 2·(1 2 0 0) + 4·(3 0 1 0).
			Name: "two keys", Op: "attention.dq", Params: AttentionParams(2, 0),
			Shapes: [][]int{key[1], key[2], key[1], key[1], key[1], key[0], key[0], key[2]},
			In: [][]float64{nil, nil, {1, 0, 0, 0}, {3, 1, 1, 1}, {0, 0, 0, 0}, {1, 2, 0, 0, 3, 0, 1, 0},
				{5, 0, 0, 0, 7, 0, 0, 0}, {0}},
			Want: [][]float64{{7, 2, 2, 0}, {3}, nil, nil, nil, nil, nil, nil},
		},
		{
			// The same with keys of 0: half of 2·(2 4 0 0) and of 4·(2 4 0 0).
			Name: "two keys", Op: "attention.dkv", Params: AttentionParams(2, 0),
			Shapes: [][]int{key[0], key[0], key[1], key[1], key[0], key[0], key[2], key[2]},
			In: [][]float64{nil, nil, {1, 0, 0, 0}, {2, 4, 0, 0}, {0, 0, 0, 0, 0, 0, 0, 0},
				{5, 0, 0, 0, 7, 0, 0, 0}, {0}, {3}},
			Want: [][]float64{{2, 4, 0, 0, 4, 8, 0, 0}, {1, 0, 0, 0, 1, 0, 0, 0}, nil, nil, nil, nil, nil, nil},
		},
	}
}

// attentionBounds is the bounds of an attention, by operand and element. Nil means that the operation is none.
//
// With D features a score a = q·k/√D of a variant errs by δ = (D+4)·u·Σ|q||k|/√D + 4u·(|a| + |m|), where m, the greatest score
// or l, is taken from it before the exponential, which errs by 8u besides. So p errs by ρ = 2δ + (2S+24)·u of itself, with the sum of S of them and its
// corrections in the forward pass. y errs by (ρ + (S+4)u)·Σ p|v|, and l by δ + (S+12)·u·(1+|l|).
//
// dy·v - r errs by ε = (D+4)·u·(Σ|dy||v| + Σ|dy||y|), where r is r for a tile of keys, and da by p·(ε + ρ·|dy·v - r|). Sums over N positions add
// (N+6)·u of the sizes of their terms. All is doubled, for the reference.
func attentionBounds(c *Case) [][]float64 {
	q, k := map[string]int{"attention": 2, "attention.dq": 4, "attention.dkv": 3}[c.Kernel.Op], 0
	if q == 0 {
		return nil
	}
	k = q + 1
	heads, group := c.Value("heads"), c.Value("group")
	b := &attentionBound{
		call: c, u: UnitRoundoff(c.Spec.Type), q: c.Values(q), k: c.Values(k), v: c.Values(k + 1),
		mask: c.mask(), queries: c.Spec.Operands[q].Shape[1], keys: c.Spec.Operands[k].Shape[1], heads: heads, group: group, width: c.Spec.Operands[k].Shape[2] / heads,
	}
	all := make([][]float64, len(c.Buffers))
	for _, i := range c.Written() {
		all[i] = make([]float64, len(c.Values(i)))
	}
	for n := range c.Spec.Operands[q].Shape[0] {
		for h := range heads * group {
			for t := range b.queries {
				switch {
				case c.Kernel.Op == "attention":
					b.forward(all, n, h, t)
				case c.Kernel.Op == "attention.dq":
					b.backward(all, n, h, t, c.Values(2), c.Values(3), c.Values(7), nil)
				default:
					b.backward(all, n, h, t, c.Values(2), nil, c.Values(6), c.Values(7))
				}
			}
		}
	}
	return all
}

// tableBounds is the bound of rotary.table. An angle errs by a few units of itself, also by the logarithm of the power behind it, in float64.
func tableBounds(c *Case) [][]float64 {
	if c.Kernel.Op != "rotary.table" {
		return nil
	}
	rows, columns := c.Spec.Operands[0].Shape[0], c.Spec.Operands[0].Shape[1]
	var all []float64
	for t := range rows {
		for i := range columns {
			power := -float64(2*(i%(columns/2))) / float64(columns) * math.Log(c.Params()[0])
			all = append(all, 0x1p-53*(8+float64(t)*math.Exp(power)*(8+8*math.Abs(power)))+2*UnitRoundoff(c.Spec.Type))
		}
	}
	return [][]float64{all}
}

// mask is the last operand where it says which keys are seen.
func (c *Case) mask() []float64 {
	if last := len(c.Buffers) - 1; c.Kernel.Operands[last].Optional {
		return c.Values(last)
	}
	return nil
}

type attentionBound struct {
	call                               *Case
	u                                  float64
	q, k, v                            []float64
	mask                               []float64 // nil means that all keys are seen
	queries, keys, heads, group, width int
}

// ofQuery and ofKey are where features of a head begin, and stat is where a number of a query is.
func (b *attentionBound) ofQuery(n, h, t int) int {
	return ((n*b.queries+t)*b.heads*b.group + h) * b.width
}
func (b *attentionBound) ofKey(n, h, s int) int {
	return ((n*b.keys+s)*b.heads + h/b.group) * b.width
}
func (b *attentionBound) stat(n, h, t int) int { return (n*b.heads*b.group+h)*b.queries + t }

// sees reports whether a query of a sample sees a key.
func (b *attentionBound) sees(n, t, s int) bool {
	first := t - b.call.Value("past")
	return s >= first && s < first+b.call.Value("window") && (b.mask == nil || b.mask[n*b.keys+s] != 0)
}

// pair is a score and by how much it errs.
func (b *attentionBound) pair(n, h, t, s int) (score, err float64) {
	size := 0.0
	for d := range b.width {
		v := b.q[b.ofQuery(n, h, t)+d] * b.k[b.ofKey(n, h, s)+d]
		score, size = score+v, size+math.Abs(v)
	}
	root := math.Sqrt(float64(b.width))
	score /= root
	return score, float64(b.width+4)*b.u*size/root + 4*b.u*math.Abs(score)
}

func (b *attentionBound) forward(all [][]float64, n, h, t int) {
	var scores []float64
	var at []int
	most, worst := math.Inf(-1), 0.0
	for s := range b.keys {
		if b.sees(n, t, s) {
			score, err := b.pair(n, h, t, s)
			scores, at = append(scores, score), append(at, s)
			most, worst = max(most, score), max(worst, err)
		}
	}
	if at == nil {
		return // y and l are exact
	}
	sum, count := 0.0, float64(len(scores))
	for _, v := range scores {
		sum += math.Exp(v - most)
	}
	l := most + math.Log(sum)
	worst += 4 * b.u * math.Abs(most)
	all[1][b.stat(n, h, t)] = 2 * (worst + (count+12)*b.u*(1+math.Abs(l)))
	for i, s := range at {
		relative := 2*worst + (3*count+28)*b.u
		for d := range b.width {
			all[0][b.ofQuery(n, h, t)+d] += 2 * relative * math.Exp(scores[i]-l) * math.Abs(b.v[b.ofKey(n, h, s)+d])
		}
	}
}

func (b *attentionBound) backward(all [][]float64, n, h, t int, dy, y, l, r []float64) {
	from, at := b.ofQuery(n, h, t), b.stat(n, h, t)
	along, size := 0.0, 0.0
	for d := range b.width {
		if y != nil {
			v := dy[from+d] * y[from+d]
			along, size = along+v, size+math.Abs(v)
		}
	}
	if y != nil {
		all[1][at] = 2 * float64(b.width+2) * b.u * size
	} else {
		along, size = r[at], math.Abs(r[at])
	}
	root := math.Sqrt(float64(b.width))
	for s := range b.keys {
		if !b.sees(n, t, s) {
			continue
		}
		score, err := b.pair(n, h, t, s)
		p, relative := math.Exp(score-l[at]), 2*err+4*b.u*math.Abs(l[at])+24*b.u
		of := b.ofKey(n, h, s)
		dp, dpSize := -along, size
		for d := range b.width {
			v := dy[from+d] * b.v[of+d]
			dp, dpSize = dp+v, dpSize+math.Abs(v)
		}
		wrong := p * (float64(b.width+4)*b.u*dpSize + relative*math.Abs(dp)) / root
		terms := float64(b.keys+b.queries*b.group+6) * b.u
		for d := range b.width {
			if y != nil {
				all[0][from+d] += 2 * math.Abs(b.k[of+d]) * (wrong + terms*p*math.Abs(dp)/root)
				continue
			}
			all[0][of+d] += 2 * math.Abs(b.q[from+d]) * (wrong + terms*p*math.Abs(dp)/root)
			all[1][of+d] += 2 * math.Abs(dy[from+d]) * p * (relative + terms)
		}
	}
}
