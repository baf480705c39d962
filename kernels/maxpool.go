package kernels

import (
	"fmt"

	"dahl/dag"
	"dahl/kernels/simd"
)

// Max-pooling over windows of at most 15×15, so that a position in the window fits a byte. The
// first of equal maxima in row-major order counts, and NaN wins, as in PyTorch. Positions beside
// the image are no elements, as if they were −∞; each window holds an element at least.
//
// In parts of a gradient the maximum of a window may lie outside the image, where it belongs to
// another part.

var maxpool = Kernel{
	Op: "maxpool", Doc: "y = maximum of each window, index = its row-major position in the window",
	Operands: []Operand{
		writes("y", Real, "n c oh ow"),
		writes("index", Mask, "n c oh ow"),
		reads("x", Real, "n c "+poolIndices),
	},
	Params: poolParams, Options: poolOptions, Sizes: poolSizes, Check: func(s *Spec) error { return checkMaxima(s, 2) }, PerPoint: 1,
	Variants: withRef("a scan of each window", maxpoolRef[float32](2), maxpoolRef[float64](2),
		atLevels("2×2 windows without branches, side by side in vectors", maxpoolAt[float32], maxpoolAt[float64], nil),
		onCUDAPool("a window per thread", poolOnCUDA("maxpool", true, 2))),
}

var maxpoolDx = Kernel{
	Op: "maxpool.dx", Doc: "dx = dy at each window's maximum, summed over windows, else 0; index 255 passes nothing",
	Operands: []Operand{
		writes("dx", Real, "n c "+poolIndices),
		reads("dy", Real, "n c oh ow"),
		reads("index", Mask, "n c oh ow"),
	},
	Params: poolParams, Options: poolOptions, Sizes: poolSizes, Flops: perElement(1, 1),
	Variants: withRef("zero, then add in the order of dy", maxpoolDxRef[float32](2), maxpoolDxRef[float64](2),
		atLevels("2×2 windows without division, side by side in vectors", maxpoolDxAt[float32], maxpoolDxAt[float64], nil),
		onCUDAPool("an element of dx per thread", spreadOnCUDA("maxpool.dx", true, 2))),
}

// poolIndices are rows and columns of an image under the windows of a pooling. The others belong to
// its statement, too.
const (
	poolIndices = "oh*stride+i-top ow*column_stride+j-left"
	poolSizes   = "i=height j=width"
	poolOptions = "column_stride=stride"
)

var poolParams = append(slidingParams[:3:3], "height", "width")

// checkMaxima refuses windows without an element. rows is as in pooling.
func checkMaxima(s *Spec, rows int) error {
	y, x := s.Operands[0].Shape, s.Operands[2].Shape
	for i, before := range []string{"top", "left"} {
		pad, size, stride := int(s.Param(before)), int(s.Param(poolParams[3+i])), int(sliding.value(s, []string{"stride", "column_stride"}[i]))
		if most := (x[rows+i]-1+pad)/stride + 1; y[rows+i] > most {
			return fmt.Errorf("y[%d] is %d, want at most %d: later windows lie beside x[%d] = %d", rows+i, y[rows+i], most, rows+i, x[rows+i])
		}
		if pad >= size {
			return fmt.Errorf("parameter %s is %d, want less than the window, which is %d", before, pad, size)
		}
	}
	return nil
}

// pooling is maps and windows of a call, and the pooling of one map by vectors. rows is the dimension of rows, followed by columns: 2, or
// 1 where channels are last.
type pooling[T Float] struct {
	simd.Pooling[T]
	stride, across int // the distance of windows along columns and along rows
	top, left      int
	height, width  int
	y              map4[T]     // or dy
	index          map4[uint8] // without elements in an average
	x              map4[T]     // or dx
	rows           int
}

// poolingOf takes operands y, index and x; index is -1 in an average.
func poolingOf[T Float](call *Call, y, index, x, rows int) pooling[T] {
	p := pooling[T]{
		across: int(call.Params[0]), stride: int(call.Params[1]), top: int(call.Params[2]), left: int(call.Params[3]),
		height: int(call.Params[4]), width: int(call.Params[5]),
		y: map4Of[T](&call.Args[y]), x: map4Of[T](&call.Args[x]), rows: rows,
	}
	if index >= 0 {
		p.index = map4Of[uint8](&call.Args[index])
	}
	return p
}

// last is the same pooling seen with channels last.
func (p *pooling[T]) last() pooling[T] {
	q := *p
	if p.rows == 2 {
		q.y, q.index, q.x, q.rows = p.y.as(&nhwcTiles), p.index.as(&nhwcTiles), p.x.as(&nhwcTiles), 1
	}
	return q
}

// square reports whether the windows are squares of a size as far apart in both directions.
func (p *pooling[T]) square() bool { return p.height == p.width && p.stride == p.across }

// area is a rectangle of windows.
type area struct{ rows, columns dag.Range }

func (a *area) has(u, v int) bool {
	return u >= a.rows.Lo && u < a.rows.Hi && v >= a.columns.Lo && v < a.columns.Hi
}

// inner returns the windows that lie in the image, and the pooling of these alone.
func (p *pooling[T]) inner() (inner pooling[T], a area) {
	r, c := p.rows, p.rows+1
	a.rows = insideWindows(p.y.extent[r], p.height, p.top, p.stride, p.x.extent[r])
	a.columns = insideWindows(p.y.extent[c], p.width, p.left, p.across, p.x.extent[c])
	if a.rows.Len() == 0 || a.columns.Len() == 0 {
		return inner, area{}
	}
	inner = *p
	inner.y, inner.index = p.y.part(r, a.rows).part(c, a.columns), p.index.part(r, a.rows).part(c, a.columns)
	inner.x = p.x.from(r, a.rows.Lo*p.stride-p.top).from(c, a.columns.Lo*p.across-p.left)
	inner.top, inner.left = 0, 0
	return inner, a
}

// insideWindows is the windows of an extent that lie in it.
func insideWindows(count, size, before, stride, extent int) dag.Range {
	lo := max(0, ceilDiv(before, stride))
	return dag.Range{Lo: lo, Hi: max(lo, min(count, floorDiv(extent-size+before, stride)+1))}
}

// within reports whether all windows lie in the image, from its first pixel on.
func (p *pooling[T]) within() bool {
	return p.top == 0 && p.left == 0 &&
		covered(p.y.extent[p.rows], p.height, p.stride) <= p.x.extent[p.rows] &&
		covered(p.y.extent[p.rows+1], p.width, p.stride) <= p.x.extent[p.rows+1]
}

// all reports whether an area has all windows.
func (p *pooling[T]) all(a area) bool {
	return a.rows.Len() == p.y.extent[p.rows] && a.columns.Len() == p.y.extent[p.rows+1]
}

// maxpoolRef scans all windows; rows is the dimension of the rows of an image.
func maxpoolRef[T Float](rows int) func(*Call) {
	return func(call *Call) {
		p := poolingOf[T](call, 0, 1, 2, rows)
		p.maxima(area{})
	}
}

func maxpoolDxRef[T Float](rows int) func(*Call) {
	return func(call *Call) {
		p := poolingOf[T](call, 1, 2, 0, rows)
		p.x.clear()
		p.spread(area{})
	}
}

// maxima scans each window outside an area.
func (p *pooling[T]) maxima(done area) {
	q := p.last()
	q.y.each(func(n, u, v, c int) {
		if !done.has(u, v) {
			q.y.elems[q.y.at(n, u, v, c)], q.index.elems[q.index.at(n, u, v, c)] = q.maximum(n, u, v, c)
		}
	})
}

// maximum is that of a window of maps with channels last.
func (p *pooling[T]) maximum(n, u, v, c int) (most T, position uint8) {
	any := false
	for i := range p.height {
		for j := range p.width {
			a, b := u*p.stride+i-p.top, v*p.across+j-p.left
			if a < 0 || a >= p.x.extent[1] || b < 0 || b >= p.x.extent[2] {
				continue
			}
			e := p.x.elems[p.x.at(n, a, b, c)]
			if !any || e > most || e != e && most == most {
				most, position, any = e, uint8(i*p.width+j), true
			}
		}
	}
	return most, position
}

// spread adds the gradient of each window outside an area, in the order of dy.
func (p *pooling[T]) spread(done area) {
	q := p.last()
	q.y.each(func(n, u, v, c int) {
		at := int(q.index.elems[q.index.at(n, u, v, c)])
		if at == noMaximum || done.has(u, v) {
			return
		}
		a, b := u*q.stride+at/q.width-q.top, v*q.across+at%q.width-q.left
		if a >= 0 && a < q.x.extent[1] && b >= 0 && b < q.x.extent[2] {
			q.x.elems[q.x.at(n, a, b, c)] += q.y.elems[q.y.at(n, u, v, c)]
		}
	})
}

// maxpoolAt treats a map as one of pixels with one channel. It gathers 2×2 windows side by side
// in vectors; other windows are as fast in Go.
func maxpoolAt[T Float](level simd.Level, call *Call) {
	p := poolingOf[T](call, 0, 1, 2, 2)
	p.most(func(inner pooling[T]) {
		if level == simd.Go || inner.height != 2 || inner.stride != 2 {
			inner.maximaGo()
			return
		}
		inner.eachMap(func() { inner.Max(level) })
	})
}

func maxpoolDxAt[T Float](level simd.Level, call *Call) {
	p := poolingOf[T](call, 1, 2, 0, 2)
	p.gradient(func(inner pooling[T]) {
		if level == simd.Go || inner.height != 2 || inner.stride != 2 {
			inner.x.clear()
			inner.spreadGo()
			return
		}
		inner.spreadAt(level)
	})
}

// most does the windows that lie in the image by a fast variant for squares, and the others by the
// reference.
func (p *pooling[T]) most(fast func(inner pooling[T])) {
	if p.square() && p.within() {
		fast(*p)
		return
	}
	var done area
	if p.square() {
		var inner pooling[T]
		if inner, done = p.inner(); done != (area{}) {
			fast(inner)
		}
	}
	if !p.all(done) {
		p.maxima(done)
	}
}

// gradient does the same for the gradient. The fast variant sets dx from the first of its windows
// on. Where windows overlap and not all lie in the image, the reference does all of them, since
// the order of additions is that of dy.
func (p *pooling[T]) gradient(fast func(inner pooling[T])) {
	if p.square() && p.within() {
		fast(*p)
		return
	}
	p.x.clear()
	inner, done := p.inner()
	if !p.square() || done == (area{}) || p.stride < p.height {
		done = area{}
	} else {
		fast(inner)
	}
	if !p.all(done) {
		p.spread(done)
	}
}

// spreadAt writes the pixels of all windows, and zeros beyond them; windows that overlap or
// leave pixels between them are added to zeros. All windows lie in the image.
func (p *pooling[T]) spreadAt(level simd.Level) {
	rows := p.rows
	height, width := p.stride*p.y.extent[rows], p.stride*p.y.extent[rows+1] // that are written
	if p.Accumulate = p.height != p.stride; p.Accumulate {
		height, width = 0, 0
	}
	if height < p.x.extent[rows] || width < p.x.extent[rows+1] {
		below, beside := p.x.from(rows, height), p.x.from(rows+1, width)
		beside.extent[rows] = height
		below.clear()
		beside.clear()
	}
	p.eachMap(func() { p.Spread(level) })
}

// maps prepares the embedded pooling, which does one map after the other: a map is a sample where
// channels are last, else a channel of one, as a map of pixels with one channel. Maps whose
// windows follow each other as rows of windows do are one. All windows lie in the image, from its
// first pixel on.
func (p *pooling[T]) maps() (samples, maps int) {
	rows := p.rows
	samples, maps, p.Channels = p.y.extent[0], p.y.extent[1], 1
	together := &maps
	if rows == 1 {
		maps, p.Channels, together = 1, p.y.extent[3], &samples
	}
	p.Rows, p.Windows, p.Size, p.Step = p.y.extent[rows], p.y.extent[rows+1], p.height, p.stride
	p.YRow, p.YPixel = p.y.stride[rows], p.y.stride[rows+1]
	p.IndexRow, p.IndexPixel = p.index.stride[rows], p.index.stride[rows+1]
	p.XRow, p.XPixel = p.x.stride[rows], p.x.stride[rows+1]
	if p.y.stride[rows-1] == p.Rows*p.YRow && p.index.stride[rows-1] == p.Rows*p.IndexRow && p.x.stride[rows-1] == p.Rows*p.Step*p.XRow {
		p.Rows, *together = p.Rows**together, 1
	}
	return samples, maps
}

// eachMap does the embedded pooling of each map.
func (p *pooling[T]) eachMap(pool func()) {
	samples, maps := p.maps()
	for n := range samples {
		for c := range maps {
			p.Y, p.Index, p.X = p.y.elems[p.y.at(n, c, 0, 0):], p.index.elems[p.index.at(n, c, 0, 0):], p.x.elems[p.x.at(n, c, 0, 0):]
			pool()
		}
	}
}
