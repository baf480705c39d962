package kernels

import (
	"dahl/dag"
	"dahl/kernels/simd"
)

// The vector convolutions take their sums from simd.Product. At a pixel of the result the
// channels under one row of the window follow each other. So all columns of the window and all
// channels are one long step of the product, and the rows of the window are its batch. No input
// is gathered or padded: where a part of the window lies outside the image, the product takes
// only the other rows and columns. Pixels that miss the same rows and columns are computed
// together: the inner ones, each side, each corner.

func conv2dNHWCAt[T Float](l simd.Level, call *Call) {
	c := convolutionOf[T](call)
	if c.add {
		c.addTo()
	}
	c.all(l, call.Work)
}

// convolutionOf is the convolution of a call.
func convolutionOf[T Float](call *Call) convNHWC[T] {
	y, x, w := map4Of[T](&call.Args[0]), map4Of[T](&call.Args[1]), map4Of[T](&call.Args[2])
	g := windowingOf(call.Params)
	c := convNHWC[T]{
		dst: y, src: x, w: w, norm: normOf[T](call), relu: rectifies(call.Params), add: call.Args[0].Accumulates(), groups: g.groups, grouped: 3,
		rows:    forwardLattice(y.extent[1], x.extent[1], w.extent[0], g.rows),
		columns: forwardLattice(y.extent[2], x.extent[2], w.extent[1], g.columns),
	}
	if len(call.Args) > 3 {
		c.bias = Data[T](&call.Args[3])
	}
	return c
}

// addTo makes the convolution add to what is there. The bias is added first, since products that
// start from the old contents take none.
func (c *convNHWC[T]) addTo() {
	if c.bias != nil {
		c.dst.each(func(n, u, v, f int) { c.dst.elems[c.dst.at(n, u, v, f)] += c.bias[f] })
	}
	c.add, c.bias = true, nil
}

// conv2dNHWCWorkspace is the bytes for the filters of pixels that share vectors, or of a panel.
func conv2dNHWCWorkspace(s *Spec) int64 {
	return convWorkspaceOf(s.Type.SizeBytes(), s.Operands[0].Shape[2], s.Operands[2].Shape, columnStride(s))
}

func convWorkspaceOf(elementBytes int64, pixels int, w []int, stride int) int64 {
	return max(wideWorkspace(elementBytes, pixels, w[0], w[1], w[2], w[3], stride), panelWorkspace(elementBytes, w[0], w[1], w[2], w[3]))
}

// columnStride is the distance of neighbouring windows of a row.
func columnStride(s *Spec) int { return int(sliding.value(s, "column_stride")) }

// conv2dNHWCDxAt is the convolution of dy with the turned filters. At stride s the pixels of dx
// fall into s×s phases, each a convolution with every s-th row and column of the filters
// (Dumoulin and Visin, arXiv:1603.07285, section 4). These are packed in the workspace. With a
// dilation see backwardLattice.
func conv2dNHWCDxAt[T Float](l simd.Level, call *Call) {
	dx, dy, wt := map4Of[T](&call.Args[0]), map4Of[T](&call.Args[1]), map4Of[T](&call.Args[2])
	c := convNHWC[T]{dst: dx, src: dy, add: call.Args[0].Accumulates()}
	if len(call.Args) > 3 {
		c.where = map4Of[T](&call.Args[3])
	}
	c.phases(l, &wt, windowingOf(call.Params), call.Work)
}

// phases computes the gradient dst of a convolution with turned filters wt.
func (c *convNHWC[T]) phases(l simd.Level, wt *map4[T], g windowing, work []byte) {
	if g == (windowing{g.rows.touching(), g.columns.touching(), 1}) && c.scatters(l, wt) {
		c.scatter(l, wt, g, work)
		return
	}
	c.groups, c.grouped = g.groups, 2
	if g.rows.every()*g.columns.every() == 1 {
		c.w = *wt
		c.eachPhase(wt, g, func(_, _ someTaps) { c.all(l, work) })
		return
	}
	filters, width := wt.extent[3], panels(wt, c.groups, panelPixels) // copied in any case
	for f := 0; f < filters; f += width {
		r := dag.Range{Lo: f, Hi: min(f+width, filters)}
		p, some := *c, wt.part(3, r)
		if width < filters {
			p = c.filters(r)
		}
		p.packedPhases(l, &some, g, work)
	}
}

// eachPhase sets the lattices of each phase, and visits the taps of the turned filters that it meets.
func (c *convNHWC[T]) eachPhase(wt *map4[T], g windowing, visit func(rows, columns someTaps)) {
	in, out := &c.dst.extent, &c.src.extent
	for p := range min(g.rows.stride, in[1]) {
		var rows, columns someTaps
		c.rows, rows = backwardLattice(in[1], out[1], wt.extent[0], g.rows, p)
		for q := range min(g.columns.stride, in[2]) {
			c.columns, columns = backwardLattice(in[2], out[2], wt.extent[1], g.columns, q)
			visit(rows, columns)
		}
	}
}

// packedPhases computes all phases of some samples at a time. The filters of all phases, no more
// than all filters, are copied to the workspace before the first. Where a window is smaller than the
// stride, phases without taps are cleared beforehand, with the others, since that goes from end to end.
func (c *convNHWC[T]) packedPhases(l simd.Level, wt *map4[T], g windowing, work []byte) {
	step := cachedSamples(&c.src, &c.dst, wt)
	gaps := wt.extent[0] < g.rows.every() || wt.extent[1] < g.columns.every()
	for n := 0; n < c.dst.extent[0]; n += step {
		rest := work
		if part := c.samples(n, step); gaps && !c.add {
			part.dst.clear()
		}
		c.eachPhase(wt, g, func(rows, columns someTaps) {
			c.w, rest = packed(rest, wt, rows, columns)
			if n == 0 {
				copyTaps(&c.w, wt, rows, columns)
			}
			if gaps && rows.count*columns.count == 0 {
				return
			}
			part := c.samples(n, step)
			part.run(l, 0, c.rows.pixels)
		})
	}
}

func conv2dNHWCDxWorkspace(s *Spec) int64 {
	dx, dy, wt := s.Operands[0].Shape, s.Operands[1].Shape, s.Operands[2].Shape
	return dxWorkspace(s, dx[2], dy[2], wt)
}

// dxWorkspace is the bytes of what is copied of the turned filters wt at a time, of the wider filters
// of pixels that share vectors, or of the filters for scatter.
func dxWorkspace(s *Spec, in, out int, wt []int) int64 {
	value := func(name string) int { return int(sliding.value(s, name)) }
	rows := axis{stride: value("stride"), dilation: value("dilation")}.every()
	columns := axis{stride: value("column_stride"), dilation: value("column_dilation")}.every()
	bytes := s.Type.SizeBytes()
	if rows*columns == 1 {
		return max(convWorkspaceOf(bytes, in, wt, 1), scatterWorkspace(bytes, in, out, wt))
	}
	terms := wt[0] * wt[1] * wt[2]
	return int64(terms*panelWidth(int(bytes), terms, wt[3])) * bytes
}

// lattice relates, along rows or along columns, pixels of the result with the pixels under their
// windows. Pixel u is at first + u·step of the result, and its window begins at from + u·stride
// of the source, which has extent pixels. Its taps are dilation pixels apart.
type lattice struct {
	pixels, first, step            int
	taps                           int
	from, stride, dilation, extent int
}

// forwardLattice is the lattice of conv2d.nhwc.
func forwardLattice(out, in, k int, a axis) lattice {
	return lattice{pixels: out, step: 1, taps: k, from: -a.before, stride: a.stride, dilation: a.dilation, extent: in}
}

// backwardLattice is the lattice of the pixels of dx at phase, phase+stride, …, and the taps of the
// turned filters that they meet. Before turning, tap t meets pixel a in window u where
//
//	u·stride + t·dilation = a + before
//
// So of taps that meet the phase every stride/e-th one does, with e the greatest common divisor of
// stride and dilation, and the windows in which they do are dilation/e apart. A phase may meet none.
func backwardLattice(in, out, k int, a axis, phase int) (lattice, someTaps) {
	every := a.every()
	first := 0 // before turning
	for first < every && floorMod(phase+a.before-first*a.dilation, a.stride) != 0 {
		first++
	}
	l := lattice{pixels: (in - phase + a.stride - 1) / a.stride, first: phase, step: a.stride, stride: 1, dilation: a.dilation * every / a.stride, extent: out}
	if first == every {
		return l, someTaps{every: every}
	}
	l.taps = max(0, (k-first+every-1)/every)
	l.from = floorDiv(phase+a.before-first*a.dilation, a.stride) - (l.taps-1)*l.dilation
	return l, someTaps{first: k - 1 - first - (l.taps-1)*every, count: l.taps, every: every}
}

// every is the distance of taps that meet pixels of one phase of the stride.
func (a axis) every() int {
	divisor, rest := a.stride, a.dilation
	for rest > 0 {
		divisor, rest = rest, divisor%rest
	}
	return a.stride / divisor
}

// touching is the same without gaps between windows or taps.
func (a axis) touching() axis { return axis{before: a.before, stride: 1, dilation: 1} }

// zone returns the end of the pixels from u whose windows have the same taps, lo to hi, within
// the source. Beside the source it is empty, with lo = hi.
func (l *lattice) zone(u int) (end, lo, hi int) {
	at := l.from + u*l.stride
	lo, hi = max(0, -floorDiv(at, l.dilation)), min(l.taps, -floorDiv(at-l.extent, l.dilation))
	if hi <= lo {
		return u + 1, 0, 0
	}
	if lo == 0 && hi == l.taps {
		return min(l.pixels, (l.extent-1-(l.taps-1)*l.dilation-l.from)/l.stride+1), lo, hi
	}
	return u + 1, lo, hi
}

// inside returns the pixels from u to end under whose windows a tap lies within the source.
func (l *lattice) inside(tap, u, end int) (first, after int) {
	at := l.from + tap*l.dilation
	return max(u, -floorDiv(at, l.stride)), min(end, floorDiv(l.extent-1-at, l.stride)+1)
}

// pace is how many more pixels of the source each pixel reads.
func (l *lattice) pace() int { return min(l.stride, l.taps) }

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
type convNHWC[T Float] struct {
	dst, src, w     map4[T]
	norm            norm[T]
	bias            []T
	relu, add       bool    // add to dst, without bias
	where           map4[T] // of the shape of dst, or without elements
	rows, columns   lattice
	groups, grouped int // in dimension grouped of the filters
}

// group is one of the groups of the convolution.
func (c *convNHWC[T]) group(g int) convNHWC[T] {
	part := *c
	part.groups = 1
	part.dst, part.src, part.w = c.dst.block(3, g, c.groups), c.src.block(3, g, c.groups), c.w.block(c.grouped, g, c.groups)
	if c.where.elems != nil {
		part.where = c.where.block(3, g, c.groups)
	}
	if c.bias != nil {
		part.bias = c.bias[g*part.dst.extent[3]:][:part.dst.extent[3]]
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
	for n := 0; n < c.dst.extent[0]; n += step {
		part := c.samples(n, step)
		part.src = c.norm.image(l, c.src.samples(n, part.dst.extent[0]))
		part.asItIs(l, work)
	}
}

// asItIs computes the whole map from the data as they lie in memory.
func (c *convNHWC[T]) asItIs(l simd.Level, work []byte) {
	if c.inPanels(l, work) {
		return
	}
	parts := c.split(l, work)
	step := cachedSamples(&c.src, &c.dst, &c.w)
	for n := 0; n < c.dst.extent[0]; n += step {
		for i := range parts {
			p := parts[i].samples(n, step)
			p.run(l, 0, p.rows.pixels)
		}
	}
}

// samples is the convolution of samples n to n+most, or to the last.
func (c *convNHWC[T]) samples(n, most int) convNHWC[T] {
	part := *c
	part.dst, part.src = c.dst.samples(n, min(most, c.dst.extent[0]-n)), c.src.samples(n, most)
	if c.where.elems != nil {
		part.where = c.where.samples(n, most)
	}
	return part
}

// cachedBytes is about how much the parts of a convolution share in the cache. The sides of all
// samples are computed after the inner pixels of all.
const cachedBytes = 256 << 10

// cachedSamples is how many samples of two maps, at least one, take at most cachedBytes or as
// much as the filters. The filters are read again for the next samples.
func cachedSamples[T Float](a, b, filters *map4[T]) int {
	elems := func(m *map4[T]) int { return m.extent[1] * m.extent[2] * m.extent[3] }
	most := max(cachedBytes/sizeOf[T](), filters.extent[0]*elems(filters))
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
	for u < end && c.columns.pixels > 0 {
		next, top, bottom := c.rows.zone(u)
		next = min(next, end)
		for v := 0; v < c.columns.pixels; {
			after, left, right := c.columns.zone(v)
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
	for n := range c.dst.extent[0] {
		for r := u; r < end; r++ {
			for s := v; s < after; s++ {
				to := c.dst.elems[n*c.dst.stride[0]+c.position(&c.dst, r, s):][:c.dst.extent[3]]
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
	row, column := c.rows.from+u*c.rows.stride+taps[0]*c.rows.dilation, c.columns.from+v*c.columns.stride+taps[2]*c.columns.dilation
	from := c.src.at(0, row, column, 0)
	to, where, cut := c.position(&c.dst, u, v), c.position(&c.where, u, v), &c.where.stride
	inner, outer, rest := arrange(
		walk{after - v, c.columns.stride * c.src.stride[2], c.columns.step * c.dst.stride[2], c.columns.step * cut[2]},
		walk{end - u, c.rows.stride * c.src.stride[1], c.rows.step * c.dst.stride[1], c.rows.step * cut[1]},
		walk{c.dst.extent[0], c.src.stride[0], c.dst.stride[0], cut[0]})
	p := simd.Product[T]{
		M: inner.count, N: c.w.extent[3], Groups: outer.count,
		ARow: inner.source, AStep: 1, AGroup: outer.source,
		BRow: c.w.stride[2], CRow: inner.result, CGroup: outer.result,
		WhereRow: inner.where, WhereGroup: outer.where,
	}
	for range rest.count {
		p.C = c.dst.elems[to:]
		if c.where.elems != nil {
			p.Where = c.where.elems[where:]
		}
		c.sum(l, &p, from, taps)
		from, to, where = from+rest.source, to+rest.result, where+rest.where
	}
}

// position is where pixel u, v of the lattices lies in a map.
func (c *convNHWC[T]) position(m *map4[T], u, v int) int {
	return m.at(0, c.rows.first+u*c.rows.step, c.columns.first+v*c.columns.step, 0)
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
	channels, columns := c.w.extent[2], taps[3]-taps[2]
	row, column := c.rows.dilation*c.src.stride[1], c.columns.dilation*c.src.stride[2]
	if columns == 1 || column == channels && c.w.stride[1] == channels*c.w.stride[2] {
		p.K, p.Batch = columns*channels, taps[1]-taps[0]
		p.ABatch, p.BBatch = row, c.w.stride[0]
		p.A, p.B = c.src.elems[from:], c.w.elems[c.w.at(taps[0], taps[2], 0, 0):]
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
			p.A = c.src.elems[from+(i-taps[0])*row+(j-taps[2])*column:]
			p.B = c.w.elems[c.w.at(i, j, 0, 0):]
			p.Run(l)
			p.Accumulate = true
		}
	}
}
