package kernels

import "dahl/kernels/simd"

// Max-pooling without padding over size×size windows, at most 15×15, so that a position in the
// window fits a byte. The first of equal maxima in row-major order counts, and NaN wins, as in
// PyTorch.

var maxpool = Kernel{
	Op: "maxpool", Doc: "y = maximum of each window, index = its row-major position in the window",
	Operands: []Operand{
		writes("y", Real, "n c oh ow"),
		writes("index", Mask, "n c oh ow"),
		reads("x", Real, "n c h w"),
	},
	Params: []string{"size", "stride"},
	Work:   poolWork(0),
	Variants: withRef("a scan of each window", maxpoolRef[float32], maxpoolRef[float64],
		atLevels("2×2 windows without branches, side by side in vectors", maxpoolAt[float32], maxpoolAt[float64], nil),
		onCUDA("a window per thread", poolOnCUDA("maxpool", true, 2))),
}

var maxpoolDx = Kernel{
	Op: "maxpool.dx", Doc: "dx = dy at each window's maximum, summed over windows, else 0",
	Operands: []Operand{
		writes("dx", Real, "n c h w"),
		reads("dy", Real, "n c oh ow"),
		reads("index", Mask, "n c oh ow"),
	},
	Params: []string{"size", "stride"},
	Work:   perElement(1, 1),
	Variants: withRef("zero, then add in the order of dy", maxpoolDxRef[float32], maxpoolDxRef[float64],
		atLevels("2×2 windows without division, side by side in vectors", maxpoolDxAt[float32], maxpoolDxAt[float64], nil),
		onCUDA("an element of dx per thread", spreadOnCUDA("maxpool.dx", true, 2))),
}

// poolWork counts one operation per element of each window of operand y.
func poolWork(y int) func(*Spec) (float64, int64) {
	return func(s *Spec) (float64, int64) {
		size := s.Param("size")
		return s.volume(y) * size * size, s.Bytes()
	}
}

func maxpoolRef[T Float](call *Call) {
	y, index, x := map4Of[T](&call.Args[0]), map4Of[uint8](&call.Args[1]), map4Of[T](&call.Args[2])
	size, stride := int(call.Params[0]), int(call.Params[1])
	y.each(func(n, c, u, v int) {
		most, position := firstMaximum(x.elems[x.at(n, c, u*stride, v*stride):], x.stride[2], size)
		y.elems[y.at(n, c, u, v)] = most
		index.elems[index.at(n, c, u, v)] = position
	})
}

// firstMaximum scans the size×size window at the start of x, whose rows are stride
// elements apart.
func firstMaximum[T Float](x []T, stride, size int) (most T, position uint8) {
	most = x[0]
	for i := range size {
		for j, v := range x[i*stride : i*stride+size] {
			if v > most || v != v && most == most {
				most, position = v, uint8(i*size+j)
			}
		}
	}
	return most, position
}

func maxpoolDxRef[T Float](call *Call) {
	dx, dy, index := map4Of[T](&call.Args[0]), map4Of[T](&call.Args[1]), map4Of[uint8](&call.Args[2])
	size, stride := int(call.Params[0]), int(call.Params[1])
	dx.clear()
	dy.each(func(n, c, u, v int) {
		p := int(index.elems[index.at(n, c, u, v)])
		dx.elems[dx.at(n, c, u*stride+p/size, v*stride+p%size)] += dy.elems[dy.at(n, c, u, v)]
	})
}

// maxpoolAt treats a map as one of pixels with one channel. It gathers 2×2 windows side by side
// in vectors; other windows are as fast in Go.
func maxpoolAt[T Float](level simd.Level, call *Call) {
	if level == simd.Go || call.Params[0] != 2 || call.Params[1] != 2 {
		maxpoolGo[T](call)
		return
	}
	p := poolsOf[T](call, 0, 1, 2, 2)
	p.each(func() { p.Max(level) })
}

func maxpoolDxAt[T Float](level simd.Level, call *Call) {
	if level == simd.Go || call.Params[0] != 2 || call.Params[1] != 2 {
		maxpoolDxGo[T](call)
		return
	}
	spreadAt[T](level, call, 2)
}

// spreadAt writes the pixels of all windows, and zeros beyond them; windows that overlap or
// leave pixels between them are added to zeros.
func spreadAt[T Float](level simd.Level, call *Call, rows int) {
	p := poolsOf[T](call, 1, 2, 0, rows)
	height, width := p.Step*p.y.extent[rows], p.Step*p.y.extent[rows+1] // that are written
	if p.Accumulate = p.Size != p.Step; p.Accumulate {
		height, width = 0, 0
	}
	if height < p.x.extent[rows] || width < p.x.extent[rows+1] {
		below, beside := p.x.from(rows, height), p.x.from(rows+1, width)
		beside.extent[rows] = height
		below.clear()
		beside.clear()
	}
	p.each(func() { p.Spread(level) })
}

// pools are the poolings of a call, map by map: a map is a sample where channels are last,
// else a channel of one, as a map of pixels with one channel. Maps whose windows follow each
// other as rows of windows do are one.
type pools[T Float] struct {
	simd.Pooling[T]
	y             map4[T]
	index         map4[uint8]
	x             map4[T]
	samples, maps int
}

// poolsOf are those of operands y, index and x. rows is the dimension of rows, followed by
// columns: 2, or 1 where channels are last.
func poolsOf[T Float](call *Call, y, index, x, rows int) pools[T] {
	p := pools[T]{y: map4Of[T](&call.Args[y]), index: map4Of[uint8](&call.Args[index]), x: map4Of[T](&call.Args[x])}
	p.samples, p.maps, p.Channels = p.y.extent[0], p.y.extent[1], 1
	together := &p.maps
	if rows == 1 {
		p.maps, p.Channels, together = 1, p.y.extent[3], &p.samples
	}
	p.Rows, p.Windows, p.Size, p.Step = p.y.extent[rows], p.y.extent[rows+1], int(call.Params[0]), int(call.Params[1])
	p.YRow, p.YPixel = p.y.stride[rows], p.y.stride[rows+1]
	p.IndexRow, p.IndexPixel = p.index.stride[rows], p.index.stride[rows+1]
	p.XRow, p.XPixel = p.x.stride[rows], p.x.stride[rows+1]
	if p.y.stride[rows-1] == p.Rows*p.YRow && p.index.stride[rows-1] == p.Rows*p.IndexRow && p.x.stride[rows-1] == p.Rows*p.Step*p.XRow {
		p.Rows, *together = p.Rows**together, 1
	}
	return p
}

// each does the pooling of each map.
func (p *pools[T]) each(pool func()) {
	for n := range p.samples {
		for c := range p.maps {
			p.Y, p.Index, p.X = p.y.elems[p.y.at(n, c, 0, 0):], p.index.elems[p.index.at(n, c, 0, 0):], p.x.elems[p.x.at(n, c, 0, 0):]
			pool()
		}
	}
}
