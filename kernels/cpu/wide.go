package cpu

import (
	"dahl/kernels/calls"
	"dahl/kernels/simd"
)

// Few filters leave most of a vector empty. Then several neighbouring pixels of a row share
// vectors: g pixels of f filters become one pixel of g·f filters. Its window is wider by the
// strides between the pixels. Filter f of pixel d is w[i,j-d·stride,c,f] at column j of the wider
// window, and zero at the columns of the other pixels only. So six filters of 5×5 fill 12 of 16
// lanes, with 6 steps for two pixels instead of 10.
//
// The added zeros change no sum of finite numbers. An infinite or NaN input may make
// NaN of neighbours of the pixels it reaches.

// vectorBytes is the size of the vectors of a level, 0 without any.
func vectorBytes(l simd.Level) int {
	return [...]int{simd.Go: 0, simd.AVX2: 32, simd.AVX512: 64}[l]
}

// SharedPixels is how many neighbouring pixels share vectors of lanes elements. It is the number
// with the fewest multiplications of vectors for a row of pixels, the rest at its end by
// themselves, if that saves a tenth.
func SharedPixels(lanes, pixels, filters, taps, stride int) int {
	if lanes == 0 {
		return 1
	}
	vectors := func(n int) int { return (n + lanes - 1) / lanes }
	alone := pixels * vectors(filters) * taps
	best, cost := 1, alone
	for g := 2; g <= min(pixels, lanes); g++ {
		c := pixels/g*vectors(g*filters)*(taps+(g-1)*stride) + pixels%g*vectors(filters)*taps
		if c < cost && 10*c < 9*alone {
			best, cost = g, c
		}
	}
	return best
}

// wideWorkspace is the bytes of the wider filters and bias at the level that needs most.
func wideWorkspace(t int64, pixels, rows, columns, channels, filters, stride int) int64 {
	most := 0
	for _, l := range simd.Levels() {
		if g := SharedPixels(vectorBytes(l)/int(t), pixels, filters, columns, stride); g > 1 {
			most = max(most, (rows*(columns+(g-1)*stride)*channels+1)*g*filters)
		}
	}
	return int64(most) * t
}

// shared is SharedPixels for results that follow each other in a row without gaps.
func shared[T calls.Float](l simd.Level, result, where *calls.Map4[T], columns *calls.Lattice) int {
	filters := result.Extent[3]
	if columns.Step > 1 || columns.Dilation > 1 || result.Stride[2] != filters || where.Elems != nil && where.Stride[2] != filters {
		return 1
	}
	return SharedPixels(vectorBytes(l)/calls.SizeOf[T](), columns.Pixels, filters, columns.Taps, columns.Stride)
}

// split returns the convolution of the pixels that share vectors, with filters in the workspace,
// and the convolution of the remaining pixels. Either may have none.
func (c *convNHWC[T]) split(l simd.Level, work []byte) (parts [2]convNHWC[T]) {
	parts[0] = *c
	g := shared(l, &c.dst, &c.where, &c.columns)
	if g == 1 || c.groups > 1 {
		return parts
	}
	wide := &parts[0]
	parts[1] = *c
	wide.columns, parts[1].columns = c.columns.Share(g)
	wide.dst, wide.where = c.dst.Share(g), c.where.Share(g)
	filters := c.w.Extent[3]
	extent := [4]int{c.w.Extent[0], wide.columns.Taps, c.w.Extent[2], g * filters}
	elems, work := calls.Scratch[T](work, extent[0]*extent[1]*extent[2]*extent[3])
	clear(elems)
	wide.w = calls.Packed4(elems, extent)
	eachShared(&c.w, &wide.w, g, c.columns.Stride, func(one, many []T) { copy(many, one) })
	if c.bias != nil {
		wide.bias, _ = calls.Scratch[T](work, g*filters)
		for d := range g {
			copy(wide.bias[d*filters:], c.bias)
		}
	}
	return parts
}

// eachShared visits the filters of one window position and channel, and their copies for each pixel
// in the wider window.
func eachShared[T calls.Float](w, wide *calls.Map4[T], g, stride int, visit func(one, many []T)) {
	filters := w.Extent[3]
	for i := range w.Extent[0] {
		for j := range w.Extent[1] {
			for c := range w.Extent[2] {
				one := w.Elems[w.At(i, j, c, 0):][:filters]
				for d := range g {
					visit(one, wide.Elems[wide.At(i, j+d*stride, c, d*filters):][:filters])
				}
			}
		}
	}
}

// split returns the gradient of the pixels that share vectors, and the gradient of the remaining pixels. Either may have
// none. The former goes into filters in the workspace, for fold to add up.
func (c *convDwNHWC[T]) split(l simd.Level, work []byte) (parts [2]convDwNHWC[T], g int) {
	parts[0] = *c
	if g = shared(l, &c.dy, &calls.Map4[T]{}, &c.columns); g == 1 || c.groups > 1 {
		return parts, 1
	}
	wide := &parts[0]
	parts[1] = *c
	wide.columns, parts[1].columns = c.columns.Share(g)
	wide.dy = c.dy.Share(g)
	extent := [4]int{c.dw.Extent[0], wide.columns.Taps, c.dw.Extent[2], g * c.dw.Extent[3]}
	elems, _ := calls.Scratch[T](work, extent[0]*extent[1]*extent[2]*extent[3])
	clear(elems)
	wide.dw = calls.Packed4(elems, extent)
	return parts, g
}

// fold adds the gradients of the pixels that share vectors to dw.
func (c *convDwNHWC[T]) fold(wide *convDwNHWC[T], g int) {
	if g == 1 {
		return
	}
	eachShared(&c.dw, &wide.dw, g, c.columns.Stride, addTo)
}

func addTo[T calls.Float](sums, x []T) {
	for i, v := range x {
		sums[i] += v
	}
}
