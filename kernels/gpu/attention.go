package gpu

import (
	"math"
	"slices"

	"dahl/kernels/calls"
	"dahl/kernels/offload"
)

// Attention and rotary positions on a CUDA device, see cuda/attention.cu.

// featuresParams mirrors Features of cuda/attention.h: an address, and the distances of samples and positions in elements.
type featuresParams struct {
	First            uint64
	Sample, Position int64
}

// byQueryParams mirrors ByQuery of cuda/attention.h: an address, and the distances of samples and heads in elements.
type byQueryParams struct {
	First        uint64
	Sample, Head int64
}

// byKeyParams mirrors ByKey of cuda/attention.h: an address, and the distance of samples in elements.
type byKeyParams struct {
	First  uint64
	Sample int64
}

// attentionParams mirrors AttentionParams of cuda/attention.h. An operand that an operation lacks is zero.
type attentionParams struct {
	Q, K, V, Y, Dy, Dk, Dv featuresParams // features of queries, keys, values, results and gradients; dq is Dk, too
	L, R                   byQueryParams  // the logarithm of a query's sum of exponentials, and the product of dy and y
	M                      byKeyParams    // the mask: 0 where no query sees a key
	Rows                   byQueryParams  // the keys of draws where weights are dropped
	Scale                  float64        // the factor of scores
	Times                  float64        // the factor of weights that are not dropped
	Least                  uint64         // the least drawn word with which a weight is not dropped

	Heads   int32 // heads of keys
	Group   int32 // heads of queries for each head of keys
	Width   int32 // features of a head
	Queries int32 // positions of queries
	Keys    int32 // positions of keys
	Window  int32 // how many keys a query sees
	Past    int32 // how many of the window's keys lie before the position of the query

	Total      int32 // warps of a launch, unless its blocks have tiles
	Adds       int32 // flag: the first result is added to what was there
	AddsSecond int32 // flag: the second result is added to what was there
	Vector     int32 // flag: the features of all heads lie at multiples of 16 bytes
}

// The variants of attention, of its gradients and of what goes with them, by the operands in their order.
var (
	Attention        = append(attentionForward.onCUDA(), attentionForward.byTiles()...)
	AttentionDrop    = attentionForward.dropping().onCUDA()
	AttentionDq      = append(attentionDq.onCUDA(), attentionDq.byTiles()...)
	AttentionDropDq  = attentionDq.dropping().onCUDA()
	AttentionDkv     = append(attentionDkv.onCUDA(), attentionDkv.byTiles()...)
	AttentionDropDkv = attentionDkv.dropping().onCUDA()

	AttentionDx     = bothGradients(AttentionDq, AttentionDkv)
	AttentionDropDx = bothGradients(AttentionDropDq, AttentionDropDkv)

	attentionForward = attentionPass{"attention", 2, false, forwardOperands}
	attentionDq      = attentionPass{"attention.dq", 2, false, dqOperands}
	attentionDkv     = attentionPass{"attention.dkv", 3, true, dkvOperands}

	forwardOperands = []operandOf{(*attentionParams).y, (*attentionParams).l, (*attentionParams).q, (*attentionParams).k, (*attentionParams).v}
	dqOperands      = []operandOf{(*attentionParams).dk, (*attentionParams).dy, (*attentionParams).q, (*attentionParams).k, (*attentionParams).v, (*attentionParams).l, (*attentionParams).r}
	dkvOperands     = []operandOf{(*attentionParams).dk, (*attentionParams).dv, (*attentionParams).dy, (*attentionParams).q, (*attentionParams).k, (*attentionParams).v, (*attentionParams).l, (*attentionParams).r}

	AttentionAlong = rowsOfHeadsOnCUDA("attention.along", 0, (*attentionParams).r, (*attentionParams).dy, (*attentionParams).y)
	AttentionMerge = rowsOfHeadsOnCUDA("attention.merge", 1, (*attentionParams).y, (*attentionParams).l, (*attentionParams).dy, (*attentionParams).r)
)

// operandOf is where an operand of a call goes: features, or numbers by query.
type operandOf func(*attentionParams) (*featuresParams, *byQueryParams)

func (p *attentionParams) q() (*featuresParams, *byQueryParams)  { return &p.Q, nil }
func (p *attentionParams) k() (*featuresParams, *byQueryParams)  { return &p.K, nil }
func (p *attentionParams) v() (*featuresParams, *byQueryParams)  { return &p.V, nil }
func (p *attentionParams) y() (*featuresParams, *byQueryParams)  { return &p.Y, nil }
func (p *attentionParams) dy() (*featuresParams, *byQueryParams) { return &p.Dy, nil }
func (p *attentionParams) dk() (*featuresParams, *byQueryParams) { return &p.Dk, nil }
func (p *attentionParams) dv() (*featuresParams, *byQueryParams) { return &p.Dv, nil }
func (p *attentionParams) l() (*featuresParams, *byQueryParams)  { return nil, &p.L }
func (p *attentionParams) r() (*featuresParams, *byQueryParams)  { return nil, &p.R }

func (p *attentionParams) rows() (*featuresParams, *byQueryParams) { return nil, &p.Rows }

// attentionPass is the forward pass of an attention, or gradients.
type attentionPass struct {
	symbol   string      // of its kernels, before the name of the variant
	q        int         // the operand of the queries; the operand of the keys is the next one
	byKey    bool        // the results belong to keys, and not to queries
	operands []operandOf // where the operands go, in their order; a mask is behind them
}

// dropping is the pass with the keys of draws behind its other operands.
func (a attentionPass) dropping() attentionPass {
	a.operands = append(slices.Clone(a.operands), (*attentionParams).rows)
	return a
}

// params is the parameter of a call without its operands, and how many rows of results a sample has: heads, and positions of each.
func (a attentionPass) params(c *calls.DeviceCall) (p attentionParams, heads, positions int) {
	queries, keys := &c.Args[a.q], &c.Args[a.q+1]
	p = attentionParams{
		Heads: c.Param(0), Group: c.Param(1), Window: c.Param(2), Past: c.Param(3),
		Queries: int32(queries.Shape[1]), Keys: int32(keys.Shape[1]), Width: int32(keys.Shape[2]) / c.Param(0),
		Adds: flag(c.Args[0].Accumulates()), AddsSecond: flag(c.Args[1].Accumulates()),
	}
	if p.Scale = 1 / math.Sqrt(float64(p.Width)); len(c.Params) > 4 {
		p.Least, p.Times = calls.DropLeast(c.Params[4]), 1/(1-c.Params[4])
	}
	if a.byKey {
		return p, int(p.Heads), int(p.Keys)
	}
	return p, int(p.Heads * p.Group), int(p.Queries)
}

// onCUDA is the variant with a warp for each query or key.
func (a attentionPass) onCUDA() []calls.Variant {
	return headsOnCUDA("a warp per query or per key", a.symbol, a.operands, func(c *calls.DeviceCall) (p attentionParams, warps int) {
		p, heads, positions := a.params(c)
		return p, heads * positions
	})
}

// bothGradients are the launches of attention.dq and then of attention.dkv for a call with the results of both.
func bothGradients(dq, dkv []calls.Variant) (all []calls.Variant) {
	for i, v := range dq {
		without := func(c *calls.DeviceCall, from, to int) *calls.DeviceCall {
			part := *c
			part.Args = slices.Delete(slices.Clone(c.Args), from, to)
			return &part
		}
		v.Doc += ", queries first"
		v.Launches = func(c *calls.DeviceCall) []offload.Launch {
			return append(dq[i].Launches(without(c, 1, 3)), dkv[i].Launches(without(c, 0, 1))...)
		}
		if v.Takes != nil {
			v.Takes = takesHeads(5)
		}
		all = append(all, v)
	}
	return all
}

// rowsOfHeadsOnCUDA is the variant with a warp for each query of a head. Operand r has a number of each, and operand 2 has features.
func rowsOfHeadsOnCUDA(symbol string, r int, operands ...operandOf) []calls.Variant {
	return headsOnCUDA("a warp per query", symbol, operands, func(c *calls.DeviceCall) (p attentionParams, warps int) {
		rows, features := c.Args[r].Shape, c.Args[2].Shape
		p = attentionParams{Heads: int32(rows[1]), Queries: int32(rows[2]), Width: int32(features[2] / rows[1])}
		return p, rows[1] * rows[2]
	})
}

// headsOnCUDA is a variant with some warps for each sample.
func headsOnCUDA(doc, symbol string, operands []operandOf, paramsOf func(c *calls.DeviceCall) (p attentionParams, warps int)) []calls.Variant {
	v := OnCUDA(doc, func(c *calls.DeviceCall) []offload.Launch {
		p, warps := paramsOf(c)
		return bySampleOfHeads(c, operands, p, 32*warps, func(p *attentionParams, samples int) offload.Launch {
			p.Total = int32(samples * warps)
			return offload.Launch{
				Module: "attention", Symbol: c.Symbol(symbol),
				Block: [3]uint32{128, 1, 1}, Grid: [3]uint32{blocksOf(int(p.Total), 128/32), 1, 1},
			}
		})
	})
	v[0].Blocks = true
	return v
}

// bySampleOfHeads are launches for some of the samples each, with some threads for each sample.
func bySampleOfHeads(c *calls.DeviceCall, operands []operandOf, p attentionParams, threads int, launch func(p *attentionParams, samples int) offload.Launch) (all []offload.Launch) {
	samples := c.Args[0].Shape[0]
	for n, step := 0, max(1, cudaMost/threads); n < samples; n += step {
		for i, of := range operands {
			a := &c.Args[i]
			if f, b := of(&p); f != nil {
				*f = featuresParams{a.Sample(n), int64(a.Stride[0]), int64(a.Stride[1])}
			} else {
				*b = byQueryParams{a.Sample(n), int64(a.Stride[0]), int64(a.Stride[1])}
			}
		}
		if len(c.Args) > len(operands) {
			m := &c.Args[len(operands)]
			p.M = byKeyParams{m.Sample(n), int64(m.Stride[0])}
		}
		l := launch(&p, min(step, samples-n))
		l.Params = offload.Params(p)
		all = append(all, l)
	}
	return all
}

// rotaryParams mirrors RotaryParams of cuda/attention.cu.
type rotaryParams struct {
	Y, X                         featuresParams
	Table                        uint64
	TableRow                     int64
	Base                         float64
	Positions, Heads, Half, Back int32
	Total                        int32
}

func rotaryLaunch(c *calls.DeviceCall, symbol string, p rotaryParams) offload.Launch {
	l := normLaunch(c.Symbol(symbol), offload.Params(p), int(p.Total))
	l.Module = "attention"
	return l
}

// RotaryTable and Rotary are the variants of rotary.table and rotary.
var (
	RotaryTable = OnCUDA("a pair per thread, in float64", func(c *calls.DeviceCall) []offload.Launch {
		table := &c.Args[0]
		p := rotaryParams{Table: table.Addr, TableRow: int64(table.Stride[0]), Base: c.Params[0], Half: int32(table.Shape[1] / 2)}
		p.Total = int32(table.Shape[0]) * p.Half
		return []offload.Launch{rotaryLaunch(c, "rotary.table", p)}
	})
	Rotary = rotaryOnCUDA()
)

func rotaryOnCUDA() []calls.Variant {
	v := OnCUDA("a pair per thread", func(c *calls.DeviceCall) []offload.Launch {
		y, x, table := &c.Args[0], &c.Args[1], &c.Args[2]
		p := rotaryParams{
			Table: table.Addr, TableRow: int64(table.Stride[0]),
			Positions: int32(x.Shape[1]), Heads: c.Param(0), Half: int32(table.Shape[1] / 2), Back: c.Param(1),
		}
		each := int(p.Positions*p.Heads) * int(p.Half)
		var all []offload.Launch
		for n, step := 0, max(1, cudaMost/each); n < x.Shape[0]; n += step {
			p.Y = featuresParams{y.Sample(n), int64(y.Stride[0]), int64(y.Stride[1])}
			p.X = featuresParams{x.Sample(n), int64(x.Stride[0]), int64(x.Stride[1])}
			p.Total = int32(min(step, x.Shape[0]-n) * each)
			all = append(all, rotaryLaunch(c, "rotary", p))
		}
		return all
	})
	v[0].Blocks = true
	return v
}
