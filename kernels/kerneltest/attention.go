package kerneltest

import (
	"math"
	"strings"

	"dahl/dag"
	"dahl/kernels/calls"
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
			Name: "two heads", Op: "attention.along", Params: dag.Params{{Name: "heads", Value: 2}},
			Shapes: [][]int{{1, 2, 1}, {1, 1, 4}, {1, 1, 4}},
			In:     [][]float64{nil, {1, 2, 3, 4}, {5, 7, 11, 13}},
			Want:   [][]float64{{5 + 14, 33 + 52}, nil, nil},
		},
		{
			// Equal sums weigh alike, and keys that nobody has seen have no weight.
			Name: "two sets of keys", Op: "attention.merge",
			Shapes: [][]int{{1, 2, 2}, {1, 2, 2}, {1, 2, 2}, {1, 2, 2}},
			In:     [][]float64{{2, 3, 5, 0}, {7, 1, 7, math.Inf(-1)}, {6, 13, 9, 17}, {7, math.Inf(-1), 7, 3}},
			Want:   [][]float64{{4, 8, 5, 17}, nil, nil, nil},
		},
		{
			// By key 0 and counter 0 Random123 draws 0x6627e8d5, 0xe169c58d, 0xbc57ac4c and 0x9b00dbd8, so that the first one of four keys has a word below a half and the others count twice:
			// a quarter of 2·(6 + 10 + 14).
			Name: "a weight that is dropped", Op: "attention.drop", Params: append(AttentionParams(4, 0), dag.Param{Name: "p", Value: 0.5}),
			Shapes: [][]int{{1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 4, 1}, {1, 4, 1}, {1, 1, 1}},
			In:     [][]float64{nil, nil, {0}, {5, 7, 1, 2}, {2, 6, 10, 14}, {0}},
			Want:   [][]float64{{15}, nil, nil, nil, nil, nil},
		},
	}
}

// attentionGradientCases are gradients by scores of 0.
func attentionGradientCases() []HandCase {
	key := [][]int{{1, 2, 4}, {1, 1, 4}, {1, 1, 1}}
	dropped := append(AttentionParams(2, 0), dag.Param{Name: "p", Value: 0.5})
	return []HandCase{
		{
			// da = 5 - 3 and 7 - 3: half of 2·(1 2 0 0) + 4·(3 0 1 0).
			Name: "two keys", Op: "attention.dq", Params: AttentionParams(2, 0),
			Shapes: [][]int{key[1], key[1], key[1], key[0], key[0], key[2], key[2]},
			In: [][]float64{nil, {1, 0, 0, 0}, {0, 0, 0, 0}, {1, 2, 0, 0, 3, 0, 1, 0},
				{5, 0, 0, 0, 7, 0, 0, 0}, {0}, {3}},
			Want: [][]float64{{7, 2, 2, 0}, nil, nil, nil, nil, nil, nil},
		},
		{
			// da = 0 - 3 and 2·7 - 3: half of -3·(1 2 0 0) + 11·(3 0 1 0).
			Name: "a weight that is dropped", Op: "attention.drop.dq", Params: dropped,
			Shapes: [][]int{key[1], key[1], key[1], key[0], key[0], key[2], key[2], key[2]},
			In: [][]float64{nil, {1, 0, 0, 0}, {0, 0, 0, 0}, {1, 2, 0, 0, 3, 0, 1, 0},
				{5, 0, 0, 0, 7, 0, 0, 0}, {0}, {3}, {0}},
			Want: [][]float64{{15, -3, 5.5, 0}, nil, nil, nil, nil, nil, nil, nil},
		},
		{
			// The same with keys of 0: half of -3·(2 4 0 0) and of 11·(2 4 0 0). Values get none of dy, or two times dy.
			Name: "a weight that is dropped", Op: "attention.drop.dkv", Params: dropped,
			Shapes: [][]int{key[0], key[0], key[1], key[1], key[0], key[0], key[2], key[2], key[2]},
			In: [][]float64{nil, nil, {1, 0, 0, 0}, {2, 4, 0, 0}, {0, 0, 0, 0, 0, 0, 0, 0},
				{5, 0, 0, 0, 7, 0, 0, 0}, {0}, {3}, {0}},
			Want: [][]float64{{-3, -6, 0, 0, 11, 22, 0, 0}, {0, 0, 0, 0, 2, 0, 0, 0}, nil, nil, nil, nil, nil, nil, nil},
		},
		{
			// The same with keys of 0: half of 2·(2 4 0 0) and of 4·(2 4 0 0).
			Name: "two keys", Op: "attention.dkv", Params: AttentionParams(2, 0),
			Shapes: [][]int{key[0], key[0], key[1], key[1], key[0], key[0], key[2], key[2]},
			In: [][]float64{nil, nil, {1, 0, 0, 0}, {2, 4, 0, 0}, {0, 0, 0, 0, 0, 0, 0, 0},
				{5, 0, 0, 0, 7, 0, 0, 0}, {0}, {3}},
			Want: [][]float64{{2, 4, 0, 0, 4, 8, 0, 0}, {1, 0, 0, 0, 1, 0, 0, 0}, nil, nil, nil, nil, nil, nil},
		},
		{
			// Queries of 0 make scores of 0 and dk = 0. dq is as above, and both keys have a weight of 1 in dv.
			Name: "all gradients", Op: "attention.dx", Params: AttentionParams(2, 0),
			Shapes: [][]int{key[1], key[0], key[0], key[1], key[1], key[0], key[0], key[2], key[2]},
			In: [][]float64{nil, nil, nil, {1, 0, 0, 0}, {0, 0, 0, 0}, {1, 2, 0, 0, 3, 0, 1, 0},
				{5, 0, 0, 0, 7, 0, 0, 0}, {0}, {3}},
			Want: [][]float64{{7, 2, 2, 0}, {0, 0, 0, 0, 0, 0, 0, 0}, {1, 0, 0, 0, 1, 0, 0, 0}, nil, nil, nil, nil, nil, nil},
		},
		{
			// The same with a draw, and keys of 0: dq is 0, and dk half of -3·(2 4 0 0) and of 11·(2 4 0 0).
			Name: "all gradients of a weight that is dropped", Op: "attention.drop.dx", Params: dropped,
			Shapes: [][]int{key[1], key[0], key[0], key[1], key[1], key[0], key[0], key[2], key[2], key[2]},
			In: [][]float64{nil, nil, nil, {1, 0, 0, 0}, {2, 4, 0, 0}, {0, 0, 0, 0, 0, 0, 0, 0},
				{5, 0, 0, 0, 7, 0, 0, 0}, {0}, {3}, {0}},
			Want: [][]float64{{0, 0, 0, 0}, {-3, -6, 0, 0, 11, 22, 0, 0}, {0, 0, 0, 0, 2, 0, 0, 0}, nil, nil, nil, nil, nil, nil, nil},
		},
	}
}

// attentionBounds is the bounds of an attention, by operand and element. Nil means that the operation is none.
//
// With D features a score a = q·k/√D of a variant errs by δ = (D+4)·u·Σ|q||k|/√D + 4u·(|a| + |m|), where m, the greatest score
// or l, is taken from it before the exponential, which errs by 8u besides. So p errs by ρ = 2δ + (2S+24)·u of itself, with the sum of S of them and its
// corrections in the forward pass. y errs by (ρ + (S+4)u)·Σ p|v|, and l by δ + (S+12)·u·(1+|l|). What was there is one more key, with l as its score and y as its
// value.
//
// dy·v - r errs by ε = (D+4)·u·(Σ|dy||v| + |r|), and da by p·(ε + ρ·|dy·v - r|). Sums over N positions, and what was there, add
// (N+6)·u of the sizes of their terms. All is doubled, for the reference.
//
// With dropout p counts δ times in y and in dv, and dy·v in da. Each product with δ, and δ itself, errs by u.
//
// Factors that are rounded add f of its size to every product, see roundings: to δ, ε, y and the gradients.
func attentionBounds(c *Case, bits int) [][]float64 {
	op := strings.Replace(c.Kernel.Op, ".drop", "", 1)
	q, k := map[string]int{"attention": 2, "attention.dx": 4, "attention.dq": 2, "attention.dkv": 3}[op], 0
	if q == 0 {
		return nil
	}
	k = q + 1
	heads, group := c.Value("heads"), c.Value("group")
	b := &attentionBound{
		call: c, q: c.Values(q), k: c.Values(k), v: c.Values(k + 1),
		mask: c.mask(), queries: c.Spec.Operands[q].Shape[1], keys: c.Spec.Operands[k].Shape[1], heads: heads, group: group, width: c.Spec.Operands[k].Shape[2] / heads,
	}
	b.u, b.f = roundings(c.Spec.Type, bits)
	if op != c.Kernel.Op {
		b.rows, b.p = c.Values(c.Operand("rows")), c.Params()[4]
	}
	all := make([][]float64, len(c.Buffers))
	for _, i := range c.Written() {
		all[i] = make([]float64, len(c.Values(i)))
		if c.Spec.Operands[i].Mode == dag.ReadWrite && op != "attention" {
			for j, v := range c.Values(i) {
				all[i][j] = 2 * float64(b.keys+b.queries*group+6) * b.u * math.Abs(v)
			}
		}
	}
	if op == "attention" && c.Spec.Operands[0].Mode == dag.ReadWrite {
		b.y, b.l = c.Values(0), c.Values(1)
	}
	for n := range c.Spec.Operands[q].Shape[0] {
		for h := range heads * group {
			for t := range b.queries {
				switch {
				case op == "attention":
					b.forward(all, n, h, t)
				case op == "attention.dq":
					b.backward(n, h, t, c.Values(1), c.Values(5), c.Values(6), all[0], nil, nil)
				case op == "attention.dkv":
					b.backward(n, h, t, c.Values(2), c.Values(6), c.Values(7), nil, all[0], all[1])
				default:
					b.backward(n, h, t, c.Values(3), c.Values(7), c.Values(8), all[0], all[1], all[2])
				}
			}
		}
	}
	return all
}

// rowsOfHeadsBounds is the bounds of attention.along, a sum of D products, and of attention.merge. There the greater l is a score of 0, the difference d
// of both errs by u·(|l1|+|l2|), and the weights by that and some units of themselves.
func rowsOfHeadsBounds(c *Case) [][]float64 {
	u, all := UnitRoundoff(c.Spec.Type), make([][]float64, len(c.Buffers))
	switch c.Kernel.Op {
	case "attention.along":
		m := c.Magnitudes()
		m.Run(&c.Kernel.Variants[0])
		for _, size := range m.Values(0) {
			all[0] = append(all[0], 2*float64(c.Spec.Operands[1].Shape[2]+2)*u*size)
		}
		return all
	case "attention.merge":
		y, l, y2, l2 := c.Values(0), c.Values(1), c.Values(2), c.Values(3)
		heads, queries, features := c.Spec.Operands[1].Shape[1], c.Spec.Operands[1].Shape[2], c.Spec.Operands[0].Shape[2]
		at := func(i int) int {
			return (i/(features*queries)*heads+i%features/(features/heads))*queries + i/features%queries
		}
		for i := range l {
			all[1] = append(all[1], 2*u*(12+4*math.Abs(l[i])+4*math.Abs(l2[i])))
		}
		for i := range y {
			all[0] = append(all[0], 2*u*(24+2*math.Abs(l[at(i)])+2*math.Abs(l2[at(i)]))*(math.Abs(y[i])+math.Abs(y2[i])))
		}
		return all
	}
	return nil
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
	u, f                               float64 // of sums, and of products
	q, k, v                            []float64
	y, l                               []float64 // that a forward pass changes; else nil
	mask                               []float64 // nil means that all keys are seen
	rows                               []float64 // keys of draws; nil means that no weight is dropped
	p                                  float64   // that one is
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

// times is how many times the weight of a key counts.
func (b *attentionBound) times(n, h, t, s int) float64 {
	if b.rows == nil {
		return 1
	}
	i := uint32(s - t + b.call.Value("past"))
	if word := calls.Philox(uint64(b.rows[b.stat(n, h, t)]), [4]uint32{i / 4})[i%4]; float64(word) < math.Floor(b.p*(1<<32)) {
		return 0
	}
	return 1 / (1 - b.p)
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
	return score, (float64(b.width+4)*b.u+b.f)*size/root + 4*b.u*math.Abs(score)
}

func (b *attentionBound) forward(all [][]float64, n, h, t int) {
	var scores []float64
	var values [][]float64
	var times []float64
	most, worst := math.Inf(-1), 0.0
	add := func(score, err, by float64, value []float64) {
		scores, values, times = append(scores, score), append(values, value), append(times, by)
		most, worst = max(most, score), max(worst, err)
	}
	for s := range b.keys {
		if b.sees(n, t, s) {
			score, err := b.pair(n, h, t, s)
			add(score, err, b.times(n, h, t, s), b.v[b.ofKey(n, h, s):][:b.width])
		}
	}
	from, at := b.ofQuery(n, h, t), b.stat(n, h, t)
	if b.l != nil {
		add(b.l[at], b.u*math.Abs(b.l[at]), 1, b.y[from:][:b.width])
	}
	if scores == nil {
		return // y and l are exact
	}
	sum, count := 0.0, float64(len(scores))
	for _, v := range scores {
		sum += math.Exp(v - most)
	}
	l := most + math.Log(sum)
	worst += 4 * b.u * math.Abs(most)
	all[1][at] = 2 * (worst + (count+12)*b.u*(1+math.Abs(l)))
	for i, value := range values {
		relative := 2*worst + (3*count+30)*b.u + b.f
		for d, v := range value {
			all[0][from+d] += 2 * relative * times[i] * math.Exp(scores[i]-l) * math.Abs(v)
		}
	}
}

// backward adds to the bounds of the gradients that an operation has.
func (b *attentionBound) backward(n, h, t int, dy, l, r, dq, dk, dv []float64) {
	from, at := b.ofQuery(n, h, t), b.stat(n, h, t)
	root := math.Sqrt(float64(b.width))
	for s := range b.keys {
		if !b.sees(n, t, s) {
			continue
		}
		score, err := b.pair(n, h, t, s)
		p, relative := math.Exp(score-l[at]), 2*err+4*b.u*math.Abs(l[at])+24*b.u
		of := b.ofKey(n, h, s)
		times, dp, dpSize := b.times(n, h, t, s), -r[at], math.Abs(r[at])
		for d := range b.width {
			v := times * dy[from+d] * b.v[of+d]
			dp, dpSize = dp+v, dpSize+math.Abs(v)
		}
		wrong := p * ((float64(b.width+6)*b.u+b.f)*dpSize + relative*math.Abs(dp)) / root
		terms := float64(b.keys+b.queries*b.group+6)*b.u + b.f
		for d := range b.width {
			if dq != nil {
				dq[from+d] += 2 * math.Abs(b.k[of+d]) * (wrong + terms*p*math.Abs(dp)/root)
			}
			if dk == nil {
				continue
			}
			dk[of+d] += 2 * math.Abs(b.q[from+d]) * (wrong + terms*p*math.Abs(dp)/root)
			dv[of+d] += 2 * math.Abs(dy[from+d]) * times * p * (relative + terms + 2*b.u)
		}
	}
}
