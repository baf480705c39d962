package kernels

import (
	"fmt"

	"dahl/dag"
	"dahl/kernels/calls"
	"dahl/kernels/gpu"
	"dahl/kernels/simd"
)

// Max-pooling over windows of at most 15×15, so that a position in the window fits a byte. The
// first of equal maxima in row-major order counts, and NaN wins, as in PyTorch. Positions outside
// the image are no elements, as if they were −∞; each window holds an element at least.
//
// In parts of a gradient the maximum of a window may lie outside the image, where it belongs to
// another part.
//
// The pixels of a window lie apart and their channels together. So a vector holds the channels of a pixel, and the windows
// need no shuffling.

var maxpool = Kernel{
	Op: "maxpool.nhwc", Doc: "y = maximum of each window, index = its row-major position in the window",
	Operands: []Operand{
		writes("y", Real, "n oh ow c"),
		writes("index", Mask, "n oh ow c"),
		reads("x", Real, "n "+poolIndices+" c").often(ties...),
	},
	Params: poolParams, Options: poolOptions, Sizes: poolSizes, Check: checkMaxima, PerPoint: 1,
	Variants: withRef("a scan of each window", maxpoolRef[float32], maxpoolRef[float64],
		atLevels("rows of pixels, a vector of channels at a time", maxpoolAt[float32], maxpoolAt[float64], nil),
		gpu.OnCUDAPool("a window per thread", gpu.PoolOnCUDA("maxpool", true))),
}

var maxpoolDx = Kernel{
	Op: "maxpool.nhwc.dx", Doc: "dx = dy at each window's maximum, summed over windows, else 0; index 255 passes nothing",
	Operands: []Operand{
		writes("dx", Real, "n "+poolIndices+" c"),
		reads("dy", Real, "n oh ow c"),
		reads("index", Mask, "n oh ow c").positions("height*width"),
	},
	Params: poolParams, Options: poolOptions, Sizes: poolSizes, Flops: perElement(1, 1),
	Variants: withRef("zero, then add in the order of dy", maxpoolDxRef[float32], maxpoolDxRef[float64],
		atLevels("each element written once where windows do not overlap", maxpoolDxAt[float32], maxpoolDxAt[float64], nil),
		gpu.OnCUDAPool("an element of dx per thread", gpu.SpreadOnCUDA("maxpool.dx", true))),
}

// noMaximum is the index of a window through which no gradient passes, because a
// ReLU after the pooling was not positive there.
const noMaximum = simd.NoMaximum

// poolIndices are rows and columns of an image under the windows of a pooling. The others belong to
// its statement, too.
const (
	poolIndices = "oh*stride+i-top ow*column_stride+j-left"
	poolSizes   = "i=height j=width"
	poolOptions = "column_stride=stride"
)

var poolParams = append(calls.SlidingParams[:3:3], "height", "width")

// checkMaxima refuses windows without an element.
func checkMaxima(s *calls.Spec) error {
	const rows = 1 // the dimension of rows, followed by columns
	y, x := s.Operands[0].Shape, s.Operands[2].Shape
	for i, before := range []string{"top", "left"} {
		pad, size, stride := int(s.Param(before)), int(s.Param(poolParams[3+i])), int(calls.Sliding.Value(s, []string{"stride", "column_stride"}[i]))
		if most := (x[rows+i]-1+pad)/stride + 1; y[rows+i] > most {
			return fmt.Errorf("y[%d] is %d, want at most %d: later windows lie beside x[%d] = %d", rows+i, y[rows+i], most, rows+i, x[rows+i])
		}
		if pad >= size {
			return fmt.Errorf("parameter %s is %d, want less than the window, which is %d", before, pad, size)
		}
	}
	return nil
}

// pooling is maps and windows of a call, and the pooling of one sample by vectors.
type pooling[T calls.Float] struct {
	simd.Pooling[T]
	stride, across int // the distance of windows along columns and along rows
	top, left      int
	height, width  int
	y              calls.Map4[T]     // or dy
	index          calls.Map4[uint8] // without elements in an average
	x              calls.Map4[T]     // or dx
}

// poolingOf takes operands y, index and x; index is -1 in an average.
func poolingOf[T calls.Float](call *calls.Call, y, index, x int) pooling[T] {
	p := pooling[T]{
		across: int(call.Params[0]), stride: int(call.Params[1]), top: int(call.Params[2]), left: int(call.Params[3]),
		height: int(call.Params[4]), width: int(call.Params[5]),
		y: calls.Map4Of[T](&call.Args[y]), x: calls.Map4Of[T](&call.Args[x]),
	}
	if index >= 0 {
		p.index = calls.Map4Of[uint8](&call.Args[index])
	}
	return p
}

// area is a rectangle of windows.
type area struct{ rows, columns dag.Range }

func (a *area) has(u, v int) bool {
	return u >= a.rows.Lo && u < a.rows.Hi && v >= a.columns.Lo && v < a.columns.Hi
}

// inner returns the windows that lie in the image, and the pooling of these alone.
func (p *pooling[T]) inner() (inner pooling[T], a area) {
	a.rows = insideWindows(p.y.Extent[1], p.height, p.top, p.stride, p.x.Extent[1])
	a.columns = insideWindows(p.y.Extent[2], p.width, p.left, p.across, p.x.Extent[2])
	if a.rows.Len() == 0 || a.columns.Len() == 0 {
		return inner, area{}
	}
	inner = *p
	inner.y, inner.index = p.y.Part(1, a.rows).Part(2, a.columns), p.index.Part(1, a.rows).Part(2, a.columns)
	inner.x = p.x.From(1, a.rows.Lo*p.stride-p.top).From(2, a.columns.Lo*p.across-p.left)
	inner.top, inner.left = 0, 0
	return inner, a
}

// insideWindows is the windows of an extent that lie in it.
func insideWindows(count, size, before, stride, extent int) dag.Range {
	lo := max(0, dag.CeilDiv(before, stride))
	return dag.Range{Lo: lo, Hi: max(lo, min(count, calls.FloorDiv(extent-size+before, stride)+1))}
}

// within reports whether all windows lie in the image, from its first pixel on.
func (p *pooling[T]) within() bool {
	return p.top == 0 && p.left == 0 &&
		calls.Covered(p.y.Extent[1], p.height, p.stride) <= p.x.Extent[1] &&
		calls.Covered(p.y.Extent[2], p.width, p.across) <= p.x.Extent[2]
}

// all reports whether an area has all windows.
func (p *pooling[T]) all(a area) bool {
	return a.rows.Len() == p.y.Extent[1] && a.columns.Len() == p.y.Extent[2]
}

// maxpoolRef scans all windows.
func maxpoolRef[T calls.Float](call *calls.Call) {
	p := poolingOf[T](call, 0, 1, 2)
	p.maxima(area{})
}

func maxpoolDxRef[T calls.Float](call *calls.Call) {
	p := poolingOf[T](call, 1, 2, 0)
	p.x.Clear()
	p.spread(area{})
}

// maxima scans each window outside an area.
func (p *pooling[T]) maxima(done area) {
	p.y.Each(func(n, u, v, c int) {
		if !done.has(u, v) {
			p.y.Elems[p.y.At(n, u, v, c)], p.index.Elems[p.index.At(n, u, v, c)] = p.maximum(n, u, v, c)
		}
	})
}

// maximum is the maximum of a window.
func (p *pooling[T]) maximum(n, u, v, c int) (most T, position uint8) {
	any := false
	for i := range p.height {
		for j := range p.width {
			a, b := u*p.stride+i-p.top, v*p.across+j-p.left
			if a < 0 || a >= p.x.Extent[1] || b < 0 || b >= p.x.Extent[2] {
				continue
			}
			e := p.x.Elems[p.x.At(n, a, b, c)]
			if !any || e > most || e != e && most == most {
				most, position, any = e, uint8(i*p.width+j), true
			}
		}
	}
	return most, position
}

// spread adds the gradient of each window outside an area, in the order of dy.
func (p *pooling[T]) spread(done area) {
	p.y.Each(func(n, u, v, c int) {
		at := int(p.index.Elems[p.index.At(n, u, v, c)])
		if at == noMaximum || done.has(u, v) {
			return
		}
		a, b := u*p.stride+at/p.width-p.top, v*p.across+at%p.width-p.left
		if a >= 0 && a < p.x.Extent[1] && b >= 0 && b < p.x.Extent[2] {
			p.x.Elems[p.x.At(n, a, b, c)] += p.y.Elems[p.y.At(n, u, v, c)]
		}
	})
}

func maxpoolAt[T calls.Float](level simd.Level, call *calls.Call) {
	p := poolingOf[T](call, 0, 1, 2)
	p.most(func(inner pooling[T]) {
		inner.eachMap(func() { inner.Max(level) })
	})
}

func maxpoolDxAt[T calls.Float](level simd.Level, call *calls.Call) {
	p := poolingOf[T](call, 1, 2, 0)
	p.gradient(func(inner pooling[T]) { inner.spreadAt(level) })
}

// most does the windows that lie in the image by a fast variant, and the others by the
// reference.
func (p *pooling[T]) most(fast func(inner pooling[T])) {
	if p.within() {
		fast(*p)
		return
	}
	inner, done := p.inner()
	if done != (area{}) {
		fast(inner)
	}
	if !p.all(done) {
		p.maxima(done)
	}
}

// gradient does the same for the gradient. The fast variant sets dx from the first of its windows
// on. Where windows overlap and not all lie in the image, the reference does all of them, since
// additions follow the order of dy.
func (p *pooling[T]) gradient(fast func(inner pooling[T])) {
	if p.within() {
		fast(*p)
		return
	}
	p.x.Clear()
	inner, done := p.inner()
	if done == (area{}) || p.stride < p.height || p.across < p.width {
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
	height, width := p.stride*p.y.Extent[1], p.across*p.y.Extent[2] // that are written
	if p.Accumulate = p.height != p.stride || p.width != p.across; p.Accumulate {
		height, width = 0, 0
	}
	if height < p.x.Extent[1] || width < p.x.Extent[2] {
		below, beside := p.x.From(1, height), p.x.From(2, width)
		beside.Extent[1] = height
		below.Clear()
		beside.Clear()
	}
	p.eachMap(func() { p.Spread(level) })
}

// maps prepares the embedded pooling, which does one sample after the other. Samples whose
// windows follow each other as rows of windows do are one. All windows lie in the image, from its
// first pixel on.
func (p *pooling[T]) maps() (samples int) {
	samples, p.Channels = p.y.Extent[0], p.y.Extent[3]
	p.Rows, p.Windows, p.Size, p.Step = p.y.Extent[1], p.y.Extent[2], p.height, p.stride
	p.Width, p.Across = p.width, p.across
	p.YRow, p.YPixel = p.y.Stride[1], p.y.Stride[2]
	p.IndexRow, p.IndexPixel = p.index.Stride[1], p.index.Stride[2]
	p.XRow, p.XPixel = p.x.Stride[1], p.x.Stride[2]
	if p.y.Stride[0] == p.Rows*p.YRow && p.index.Stride[0] == p.Rows*p.IndexRow && p.x.Stride[0] == p.Rows*p.Step*p.XRow {
		p.Rows, samples = p.Rows*samples, 1
	}
	return samples
}

// eachMap does the embedded pooling of each sample.
func (p *pooling[T]) eachMap(pool func()) {
	for n := range p.maps() {
		p.Y, p.Index, p.X = p.y.Elems[p.y.At(n, 0, 0, 0):], p.index.Elems[p.index.At(n, 0, 0, 0):], p.x.Elems[p.x.At(n, 0, 0, 0):]
		pool()
	}
}

// Average pooling. Positions of a window outside the image count as zeros, as in PyTorch with
// count_include_pad, so every window is divided by its number of positions.

var avgpool = Kernel{
	Op: "avgpool.nhwc", Doc: "y = mean of each window",
	Operands: []Operand{
		writes("y", Real, "n oh ow c"),
		reads("x", Real, "n "+poolIndices+" c"),
	},
	Params: poolParams, Options: poolOptions, Sizes: poolSizes, PerPoint: 1,
	Variants: withRef("the sum of each window in row-major order, divided", avgpoolRef[float32], avgpoolRef[float64],
		gpu.OnCUDAPool("a window per thread", gpu.PoolOnCUDA("avgpool", false))),
}

var avgpoolDx = Kernel{
	Op: "avgpool.nhwc.dx", Doc: "dx = dy/(height·width) spread over each window, summed over windows",
	Operands: []Operand{
		writes("dx", Real, "n "+poolIndices+" c"),
		reads("dy", Real, "n oh ow c"),
	},
	Params: poolParams, Options: poolOptions, Sizes: poolSizes, PerPoint: 1,
	Variants: withRef("zero, then add in the order of dy", avgpoolDxRef[float32], avgpoolDxRef[float64],
		gpu.OnCUDAPool("an element of dx per thread", gpu.SpreadOnCUDA("avgpool.dx", false))),
}

func avgpoolRef[T calls.Float](call *calls.Call) {
	p := poolingOf[T](call, 0, -1, 1)
	p.y.Each(func(n, u, v, c int) {
		var sum T
		p.eachPixel(n, u, v, c, func(e *T) { sum += *e })
		p.y.Elems[p.y.At(n, u, v, c)] = sum / T(p.height*p.width)
	})
}

func avgpoolDxRef[T calls.Float](call *calls.Call) {
	p := poolingOf[T](call, 1, -1, 0)
	p.x.Clear()
	p.y.Each(func(n, u, v, c int) {
		share := p.y.Elems[p.y.At(n, u, v, c)] / T(p.height*p.width)
		p.eachPixel(n, u, v, c, func(e *T) { *e += share })
	})
}

// eachPixel visits the elements of a window in row-major order.
func (p *pooling[T]) eachPixel(n, u, v, c int, visit func(e *T)) {
	for i := range p.height {
		for j := range p.width {
			a, b := u*p.stride+i-p.top, v*p.across+j-p.left
			if a >= 0 && a < p.x.Extent[1] && b >= 0 && b < p.x.Extent[2] {
				visit(&p.x.Elems[p.x.At(n, a, b, c)])
			}
		}
	}
}

// Average of all pixels of each channel. Sums go from 0 in the order of rows in all variants,
// so that these give the same bits.

var globalavgpool = Kernel{
	Op: "globalavgpool.nhwc", Doc: "y[n,c] = mean of x[n,h,w,c] over h and w",
	Operands: []Operand{writes("y", Real, "n 1 1 c"), reads("x", Real, "n h w c")},
	PerPoint: 1,
	Variants: withRef("channel by channel", meanPixels[float32], meanPixels[float64],
		atLevels("pixel by pixel, a vector of channels at a time", meanOfPixels[float32], meanOfPixels[float64], nil),
		gpu.GlobalOnCUDA()),
}

var globalavgpoolDx = Kernel{
	Op: "globalavgpool.nhwc.dx", Doc: "dx[n,h,w,c] = dy[n,c]/pixels",
	Operands: []Operand{writes("dx", Real, "n h w c"), reads("dy", Real, "n 1 1 c")},
	Params:   []string{"pixels"}, PerPoint: 1,
	Variants: withRef("pixel by pixel", spreadPixels[float32], spreadPixels[float64],
		atLevels("one pixel, and copies of it", copyPixels[float32], copyPixels[float64], nil)[:1], gpu.GlobalDxOnCUDA()),
}

// pixelsOf is a map with its dimensions in the order samples, channels, rows, columns.
func pixelsOf[T calls.Float](a *calls.Arg) calls.Map4[T] {
	m := calls.Map4Of[T](a)
	return m.As([4]int{0, 3, 1, 2})
}

func meanPixels[T calls.Float](call *calls.Call) {
	y, x := pixelsOf[T](&call.Args[0]), pixelsOf[T](&call.Args[1])
	y.Each(func(n, c, _, _ int) {
		var total T
		for h := range x.Extent[2] {
			for w := range x.Extent[3] {
				total += x.Elems[x.At(n, c, h, w)]
			}
		}
		y.Elems[y.At(n, c, 0, 0)] = total / T(x.Extent[2]*x.Extent[3])
	})
}

func spreadPixels[T calls.Float](call *calls.Call) {
	dx, dy := pixelsOf[T](&call.Args[0]), pixelsOf[T](&call.Args[1])
	pixels := T(call.Params[0]) // of the whole image
	dx.Each(func(n, c, h, w int) {
		dx.Elems[dx.At(n, c, h, w)] = dy.Elems[dy.At(n, c, 0, 0)] / pixels
	})
}

func meanOfPixels[T calls.Float](level simd.Level, call *calls.Call) {
	y, x := calls.Map4Of[T](&call.Args[0]), calls.Map4Of[T](&call.Args[1])
	for n := range y.Extent[0] {
		sum := y.Elems[y.At(n, 0, 0, 0):][:y.Extent[3]]
		clear(sum)
		for h := range x.Extent[1] {
			for w := range x.Extent[2] {
				simd.Add(level, sum, x.Elems[x.At(n, h, w, 0):][:x.Extent[3]])
			}
		}
		for c := range sum {
			sum[c] /= T(x.Extent[1] * x.Extent[2])
		}
	}
}

func copyPixels[T calls.Float](_ simd.Level, call *calls.Call) {
	dx, dy := calls.Map4Of[T](&call.Args[0]), calls.Map4Of[T](&call.Args[1])
	for n := range dx.Extent[0] {
		first := dx.Elems[dx.At(n, 0, 0, 0):][:dx.Extent[3]]
		for c := range first {
			first[c] = dy.Elems[dy.At(n, 0, 0, c)] / T(call.Params[0])
		}
		for h := range dx.Extent[1] {
			for w := range dx.Extent[2] {
				copy(dx.Elems[dx.At(n, h, w, 0):], first)
			}
		}
	}
}
