package cpu

import (
	"dahl/dag"
	"dahl/kernels/calls"
	"dahl/kernels/simd"
)

// The vector convolutions take their sums from simd.Product. At a pixel of the result the
// channels under one row of the window follow each other. So all columns of the window and all
// channels are one long step of the product, and the rows of the window are its batch. No input
// is gathered or padded: where a part of the window lies outside the image, the product takes
// only the other rows and columns. Pixels that miss the same rows and columns are computed
// together: the inner ones, each side, each corner.

// Conv2dNHWCAt is conv2d.nhwc: y = x ⋆ w + b, its positive part with parameter relu, or y + x ⋆ w + b where the call
// accumulates. Operands are y of n×oh×ow×f, x of n×h×w×c, w of i×j×c×f, and an optional b of f.
func Conv2dNHWCAt[T calls.Float](l simd.Level, call *calls.Call) {
	c := convolutionOf[T](call)
	if c.add {
		c.addTo()
	}
	c.all(l, call.Work)
}

// convolutionOf is the convolution of a call.
func convolutionOf[T calls.Float](call *calls.Call) convNHWC[T] {
	y, x, w := calls.Map4Of[T](&call.Args[0]), calls.Map4Of[T](&call.Args[1]), calls.Map4Of[T](&call.Args[2])
	g := calls.WindowingOf(call.Params)
	c := convNHWC[T]{
		dst: y, src: x, w: w, norm: normOf[T](call), relu: calls.Rectifies(call.Params), add: call.Args[0].Accumulates(), groups: g.Groups, grouped: 3,
		rows:    calls.ForwardLattice(y.Extent[1], x.Extent[1], w.Extent[0], g.Rows),
		columns: calls.ForwardLattice(y.Extent[2], x.Extent[2], w.Extent[1], g.Columns),
	}
	if len(call.Args) > 3 {
		c.bias = calls.Data[T](&call.Args[3])
	}
	return c
}

// addTo makes the convolution add to what is there. The bias is added first, since products that
// start from the old contents take none.
func (c *convNHWC[T]) addTo() {
	if c.bias != nil {
		c.dst.Each(func(n, u, v, f int) { c.dst.Elems[c.dst.At(n, u, v, f)] += c.bias[f] })
	}
	c.add, c.bias = true, nil
}

// Conv2dNHWCWorkspace is the bytes for the filters of pixels that share vectors, or of a panel.
func Conv2dNHWCWorkspace(s *calls.Spec) int64 {
	w := s.Operands[2].Shape
	return max(convWorkspaceOf(s.Type.SizeBytes(), s.Operands[0].Shape[2], w, columnStride(s)), repeatWorkspace(s, 1, w[3]))
}

func convWorkspaceOf(elementBytes int64, pixels int, w []int, stride int) int64 {
	return max(wideWorkspace(elementBytes, pixels, w[0], w[1], w[2], w[3], stride), panelWorkspace(elementBytes, w[0], w[1], w[2], w[3]))
}

// columnStride is the distance of neighbouring windows of a row.
func columnStride(s *calls.Spec) int { return int(calls.Sliding.Value(s, "column_stride")) }

// Conv2dNHWCDxAt is the convolution of dy with the turned filters. At stride s the pixels of dx
// fall into s×s phases, each a convolution with every s-th row and column of the filters
// (Dumoulin and Visin, arXiv:1603.07285, section 4). These are packed in the workspace. With a
// dilation see BackwardLattice.
func Conv2dNHWCDxAt[T calls.Float](l simd.Level, call *calls.Call) {
	dx, dy, wt := calls.Map4Of[T](&call.Args[0]), calls.Map4Of[T](&call.Args[1]), calls.Map4Of[T](&call.Args[2])
	c := convNHWC[T]{dst: dx, src: dy, add: call.Args[0].Accumulates()}
	if len(call.Args) > 3 {
		c.where = calls.Map4Of[T](&call.Args[3])
	}
	c.phases(l, &wt, calls.WindowingOf(call.Params), call.Work)
}

// phases computes the gradient dst of a convolution with turned filters wt.
func (c *convNHWC[T]) phases(l simd.Level, wt *calls.Map4[T], g calls.Windowing, work []byte) {
	if g == (calls.Windowing{Rows: g.Rows.Touching(), Columns: g.Columns.Touching(), Groups: 1}) && c.scatters(l, wt) {
		c.scatter(l, wt, g, work)
		return
	}
	c.groups, c.grouped = g.Groups, 2
	if g.Rows.Every()*g.Columns.Every() == 1 {
		c.w = *wt
		c.eachPhase(wt, g, func(_, _ calls.SomeTaps) { c.all(l, work) })
		return
	}
	filters, width := wt.Extent[3], panels(wt, c.groups, panelPixels) // copied in any case
	for f := 0; f < filters; f += width {
		r := dag.Range{Lo: f, Hi: min(f+width, filters)}
		p, some := *c, wt.Part(3, r)
		if width < filters {
			p = c.filters(r)
		}
		p.packedPhases(l, &some, g, work)
	}
}

// eachPhase sets the lattices of each phase, and visits the taps of the turned filters that it meets.
func (c *convNHWC[T]) eachPhase(wt *calls.Map4[T], g calls.Windowing, visit func(rows, columns calls.SomeTaps)) {
	in, out := &c.dst.Extent, &c.src.Extent
	for p := range min(g.Rows.Stride, in[1]) {
		var rows, columns calls.SomeTaps
		c.rows, rows = calls.BackwardLattice(in[1], out[1], wt.Extent[0], g.Rows, p)
		for q := range min(g.Columns.Stride, in[2]) {
			c.columns, columns = calls.BackwardLattice(in[2], out[2], wt.Extent[1], g.Columns, q)
			visit(rows, columns)
		}
	}
}

// packedPhases computes all phases of some samples at a time. The filters of all phases, no more
// than all filters, are copied to the workspace before the first. Where a window is smaller than the
// stride, phases without taps are cleared beforehand, with the others, since that goes from end to end.
func (c *convNHWC[T]) packedPhases(l simd.Level, wt *calls.Map4[T], g calls.Windowing, work []byte) {
	step := cachedSamples(&c.src, &c.dst, wt)
	gaps := wt.Extent[0] < g.Rows.Every() || wt.Extent[1] < g.Columns.Every()
	for n := 0; n < c.dst.Extent[0]; n += step {
		rest := work
		if part := c.samples(n, step); gaps && !c.add {
			part.dst.Clear()
		}
		c.eachPhase(wt, g, func(rows, columns calls.SomeTaps) {
			c.w, rest = packed(rest, wt, rows, columns)
			if n == 0 {
				copyTaps(&c.w, wt, rows, columns)
			}
			if gaps && rows.Count*columns.Count == 0 {
				return
			}
			part := c.samples(n, step)
			part.run(l, 0, c.rows.Pixels)
		})
	}
}

// Conv2dNHWCDxWorkspace is the bytes of copies of filters for conv2d.nhwc.dx, with operands dx, dy and turned filters wt of
// i×j×f×c.
func Conv2dNHWCDxWorkspace(s *calls.Spec) int64 {
	dx, dy, wt := s.Operands[0].Shape, s.Operands[1].Shape, s.Operands[2].Shape
	return dxWorkspace(s, dx[2], dy[2], wt)
}

// dxWorkspace is the bytes of copies: of the turned filters wt, as many as are copied at a time, of the wider filters
// for shared vectors, or of the filters for scatter.
func dxWorkspace(s *calls.Spec, in, out int, wt []int) int64 {
	value := func(name string) int { return int(calls.Sliding.Value(s, name)) }
	rows := calls.Axis{Stride: value("stride"), Dilation: value("dilation")}.Every()
	columns := calls.Axis{Stride: value("column_stride"), Dilation: value("column_dilation")}.Every()
	bytes := s.Type.SizeBytes()
	if rows*columns == 1 {
		return max(convWorkspaceOf(bytes, in, wt, 1), scatterWorkspace(bytes, in, out, wt))
	}
	terms := wt[0] * wt[1] * wt[2]
	return int64(terms*panelWidth(int(bytes), terms, wt[3])) * bytes
}

// walk is pixels at equal distances in the source, the result and the map where.
type walk struct{ count, source, result, where int }

// join merges an inner walk with an outer one if the outer's steps are as long as the whole inner
// walk.
func (w *walk) join(outer walk) bool {
	switch {
	case outer.count == 1:
	case w.count == 1:
		*w = outer
	case outer.source == w.count*w.source && outer.result == w.count*w.result && outer.where == w.count*w.where:
		w.count *= outer.count
	default:
		return false
	}
	return true
}

// convNHWC is a convolution of channels-last maps: filters w of I×J×C×F, a bias
// or nil, and where elements of the result are zero.
type convNHWC[T calls.Float] struct {
	dst, src, w     calls.Map4[T]
	norm            norm[T]
	bias            []T
	relu, add       bool          // add to dst, without bias
	where           calls.Map4[T] // of the shape of dst, or without elements
	rows, columns   calls.Lattice
	groups, grouped int // in dimension grouped of the filters
}

// group is one of the groups of the convolution.
func (c *convNHWC[T]) group(g int) convNHWC[T] {
	part := *c
	part.groups = 1
	part.dst, part.src, part.w = c.dst.Block(3, g, c.groups), c.src.Block(3, g, c.groups), c.w.Block(c.grouped, g, c.groups)
	if c.where.Elems != nil {
		part.where = c.where.Block(3, g, c.groups)
	}
	if c.bias != nil {
		part.bias = c.bias[g*part.dst.Extent[3]:][:part.dst.Extent[3]]
	}
	return part
}

// all computes the whole map. Pixels share no vectors without a workspace.
func (c *convNHWC[T]) all(l simd.Level, work []byte) {
	if c.norm.room == nil {
		c.asItIs(l, work)
		return
	}
	step := c.norm.samples(&c.src)
	for n := 0; n < c.dst.Extent[0]; n += step {
		part := c.samples(n, step)
		part.src = c.norm.image(l, c.src.Samples(n, part.dst.Extent[0]))
		part.asItIs(l, work)
	}
}

// asItIs computes the whole map from the data as they lie in memory.
func (c *convNHWC[T]) asItIs(l simd.Level, work []byte) {
	if c.inPanels(l, work) || c.repeating(l, work) {
		return
	}
	parts := c.split(l, work)
	step := cachedSamples(&c.src, &c.dst, &c.w)
	for n := 0; n < c.dst.Extent[0]; n += step {
		for i := range parts {
			p := parts[i].samples(n, step)
			p.run(l, 0, p.rows.Pixels)
		}
	}
}

// samples is the convolution of samples n to n+most, or to the last.
func (c *convNHWC[T]) samples(n, most int) convNHWC[T] {
	part := *c
	part.dst, part.src = c.dst.Samples(n, min(most, c.dst.Extent[0]-n)), c.src.Samples(n, most)
	if c.where.Elems != nil {
		part.where = c.where.Samples(n, most)
	}
	return part
}

// CachedBytes is about how much the parts of a convolution share in the cache. The sides of all
// samples are computed after the inner pixels of all.
const CachedBytes = 256 << 10

// cachedSamples is how many samples of two maps, at least one, take at most CachedBytes or as
// much as the filters. The filters are read again for the next samples.
func cachedSamples[T calls.Float](a, b, filters *calls.Map4[T]) int {
	elems := func(m *calls.Map4[T]) int { return m.Extent[1] * m.Extent[2] * m.Extent[3] }
	most := max(CachedBytes/calls.SizeOf[T](), filters.Extent[0]*elems(filters))
	return max(1, most/(elems(a)+elems(b)))
}

// run computes rows u to end of the lattice, of all samples.
func (c *convNHWC[T]) run(l simd.Level, u, end int) {
	if c.groups < 2 || c.depthwise() {
		c.zones(l, u, end)
		return
	}
	for g := range c.groups {
		part := c.group(g)
		part.zones(l, u, end)
	}
}

// zones is run of one group, or of all groups of a depthwise convolution.
func (c *convNHWC[T]) zones(l simd.Level, u, end int) {
	for u < end && c.columns.Pixels > 0 {
		next, top, bottom := c.rows.Zone(u)
		next = min(next, end)
		for v := 0; v < c.columns.Pixels; {
			after, left, right := c.columns.Zone(v)
			if top == bottom || left == right {
				c.empty(u, next, v, after)
			} else if c.groups > 1 {
				c.depthwisePart(l, u, next, v, after, [4]int{top, bottom, left, right})
			} else {
				c.part(l, u, next, v, after, [4]int{top, bottom, left, right})
			}
			v = after
		}
		u = next
	}
}

// empty sets pixels whose windows lie outside the source.
func (c *convNHWC[T]) empty(u, end, v, after int) {
	if c.add {
		return
	}
	for n := range c.dst.Extent[0] {
		for r := u; r < end; r++ {
			for s := v; s < after; s++ {
				to := c.dst.Elems[n*c.dst.Stride[0]+c.position(&c.dst, r, s):][:c.dst.Extent[3]]
				clear(to)
				for f, b := range c.bias {
					if !(c.relu && b < 0) {
						to[f] = b
					}
				}
			}
		}
	}
}

// part computes pixels whose windows lie in the source with rows taps[0] to taps[1] and
// columns taps[2] to taps[3].
func (c *convNHWC[T]) part(l simd.Level, u, end, v, after int, taps [4]int) {
	from, to, where := c.corner(u, v, taps)
	inner, outer, rest := c.walks(u, end, v, after)
	p := simd.Product[T]{
		M: inner.count, N: c.w.Extent[3], Groups: outer.count,
		ARow: inner.source, AStep: 1, AGroup: outer.source,
		BRow: c.w.Stride[2], CRow: inner.result, CGroup: outer.result,
		WhereRow: inner.where, WhereGroup: outer.where,
	}
	for range rest.count {
		p.C = c.dst.Elems[to:]
		if c.where.Elems != nil {
			p.Where = c.where.Elems[where:]
		}
		c.sum(l, &p, from, taps)
		from, to, where = from+rest.source, to+rest.result, where+rest.where
	}
}

// corner is where the first tap under pixel u, v lies in the source, and where the pixel lies in the result and in the map where.
func (c *convNHWC[T]) corner(u, v int, taps [4]int) (from, to, where int) {
	row, column := c.rows.From+u*c.rows.Stride+taps[0]*c.rows.Dilation, c.columns.From+v*c.columns.Stride+taps[2]*c.columns.Dilation
	return c.src.At(0, row, column, 0), c.position(&c.dst, u, v), c.position(&c.where, u, v)
}

// walks go over pixels u to end and v to after of all samples.
func (c *convNHWC[T]) walks(u, end, v, after int) (inner, outer, rest walk) {
	cut := &c.where.Stride
	return arrange(
		walk{after - v, c.columns.Stride * c.src.Stride[2], c.columns.Step * c.dst.Stride[2], c.columns.Step * cut[2]},
		walk{end - u, c.rows.Stride * c.src.Stride[1], c.rows.Step * c.dst.Stride[1], c.rows.Step * cut[1]},
		walk{c.dst.Extent[0], c.src.Stride[0], c.dst.Stride[0], cut[0]})
}

// position is where pixel u, v of the lattices lies in a map.
func (c *convNHWC[T]) position(m *calls.Map4[T], u, v int) int {
	return m.At(0, c.rows.First+u*c.rows.Step, c.columns.First+v*c.columns.Step, 0)
}

// enoughRows is the fewest rows of a product that keep the multipliers busy.
const enoughRows = 6

// arrange joins walks over columns, rows and samples. It chooses the rows of a product, its
// groups and the rest. The rows are the columns if there are enough of them for a block, else the
// longest walk.
func arrange(columns, rows, samples walk) (inner, outer, rest walk) {
	inner, outer, rest = columns, rows, samples
	if inner.join(outer) {
		outer, rest = rest, walk{count: 1}
	}
	if outer.join(rest) {
		rest = walk{count: 1}
	}
	if inner.join(outer) {
		outer, rest = rest, walk{count: 1}
	}
	if inner.count < enoughRows && outer.count > inner.count {
		inner, outer = outer, inner
	}
	if inner.count < enoughRows && rest.count > inner.count {
		inner, rest = rest, inner
	}
	if rest.count > outer.count {
		outer, rest = rest, outer
	}
	return inner, outer, rest
}

// sum runs a product over the given taps. The columns of the window are one step if they touch and
// neither the source nor the filters are cut between channels. Otherwise each column is a product of its own.
func (c *convNHWC[T]) sum(l simd.Level, p *simd.Product[T], from int, taps [4]int) {
	channels, columns := c.w.Extent[2], taps[3]-taps[2]
	row, column := c.rows.Dilation*c.src.Stride[1], c.columns.Dilation*c.src.Stride[2]
	if columns == 1 || column == channels && c.w.Stride[1] == channels*c.w.Stride[2] {
		p.K, p.Batch = columns*channels, taps[1]-taps[0]
		p.ABatch, p.BBatch = row, c.w.Stride[0]
		p.A, p.B = c.src.Elems[from:], c.w.Elems[c.w.At(taps[0], taps[2], 0, 0):]
		p.Bias, p.ReLU, p.Accumulate = c.bias, c.relu, c.add
		p.Run(l)
		return
	}
	p.K, p.Batch, p.Bias, p.Accumulate = channels, 1, c.bias, c.add
	where := p.Where
	for i := taps[0]; i < taps[1]; i++ {
		for j := taps[2]; j < taps[3]; j++ {
			last := i == taps[1]-1 && j == taps[3]-1
			p.ReLU, p.Where = c.relu && last, nil
			if last {
				p.Where = where
			}
			p.A = c.src.Elems[from+(i-taps[0])*row+(j-taps[2])*column:]
			p.B = c.w.Elems[c.w.At(i, j, 0, 0):]
			p.Run(l)
			p.Accumulate = true
		}
	}
}
