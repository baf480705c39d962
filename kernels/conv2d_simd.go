package kernels

import "dahl/kernels/simd"

// Convolutions of N×C×H×W images turn the filters and a few samples at a time into
// channels-last ones in the workspace, and the result back. What was there before is turned,
// too, and the sums start from it.

// turnedBytes is the most that the images and maps in the workspace take, if they hold more than
// one sample.
const turnedBytes = 256 << 10

// turnedExtents returns how many samples are turned at a time, and the extents of their
// map (n f oh ow) and image (n c h w) with channels last.
func turnedExtents(y, x []int, elementBytes int) (samples int, yTurned, xTurned [4]int) {
	one := (y[1]*y[2]*y[3] + x[1]*x[2]*x[3]) * elementBytes
	samples = max(1, min(y[0], turnedBytes/one))
	return samples, [4]int{samples, y[2], y[3], y[1]}, [4]int{samples, x[2], x[3], x[1]}
}

// turnedWorkspace is the workspace of a convolution with map, image and filters in operands y, x
// and w. For dx the filters are turned round.
func turnedWorkspace(y, x, w int, dx bool) func(s *Spec) int64 {
	return func(s *Spec) int64 {
		filters, bytes := s.Operands[w].Shape, s.Type.SizeBytes()
		_, yTurned, xTurned := turnedExtents(s.Operands[y].Shape, s.Operands[x].Shape, int(bytes))
		f, c, i, j := filters[0], filters[1], filters[2], filters[3]
		rest := convWorkspaceOf(bytes, yTurned[2], []int{i, j, c, f}, columnStride(s))
		if dx {
			rest = dxWorkspace(s, xTurned[2], yTurned[2], []int{i, j, f, c})
		}
		return roomBytes(yTurned, bytes) + roomBytes(xTurned, bytes) + roomBytes([4]int{i, j, c, f}, bytes) + rest
	}
}

// room takes a map from the workspace, whole cache lines.
func room[T Float](work []byte, extent [4]int) (m map4[T], rest []byte) {
	elems, _ := scratch[T](work, extent[0]*extent[1]*extent[2]*extent[3])
	return packed4(elems, extent), work[roomBytes(extent, int64(sizeOf[T]())):]
}

func roomBytes(extent [4]int, elementBytes int64) int64 {
	return (int64(extent[0]*extent[1]*extent[2]*extent[3])*elementBytes + 63) &^ 63
}

// samples is count samples of a map from n.
func (m *map4[T]) samples(n, count int) map4[T] {
	part := *m
	part.elems = m.elems[n*m.stride[0]:]
	part.extent[0] = count
	return part
}

func conv2dAt[T Float](l simd.Level, call *Call) {
	y, x, w := map4Of[T](&call.Args[0]), map4Of[T](&call.Args[1]), map4Of[T](&call.Args[2])
	g, add := windowingOf(call.Params), call.Args[0].Accumulates()
	t, work := turnedOf(call.Work, &y, &x, [4]int{w.extent[2], w.extent[3], w.extent[1], w.extent[0]})
	moveTo(l, &hwioTiles, t.w, w)
	for n := 0; n < y.extent[0]; n += t.samples {
		count := min(t.samples, y.extent[0]-n)
		moveTo(l, &nhwcTiles, t.x.samples(0, count), x.samples(n, count))
		c := convNHWC[T]{
			dst: t.y, src: t.x, w: t.w, groups: g.groups, grouped: 3,
			rows:    forwardLattice(y.extent[2], x.extent[2], w.extent[2], g.rows),
			columns: forwardLattice(y.extent[3], x.extent[3], w.extent[3], g.columns),
		}
		if len(call.Args) > 3 {
			c.bias = Data[T](&call.Args[3])
		}
		c.dst.extent[0] = count
		if add {
			moveTo(l, &nhwcTiles, c.dst, y.samples(n, count))
			c.addTo()
		}
		c.all(l, work)
		moveTo(l, &nchwTiles, y.samples(n, count), t.y.samples(0, count))
	}
}

// turned is a map, an image and filters with channels last.
type turned[T Float] struct {
	samples int // of the map and the image
	y, x, w map4[T]
}

func turnedOf[T Float](work []byte, y, x *map4[T], filters [4]int) (t turned[T], rest []byte) {
	var yTurned, xTurned [4]int
	t.samples, yTurned, xTurned = turnedExtents(y.extent[:], x.extent[:], sizeOf[T]())
	t.y, work = room[T](work, yTurned)
	t.x, work = room[T](work, xTurned)
	t.w, work = room[T](work, filters)
	return t, work
}

func conv2dDxAt[T Float](l simd.Level, call *Call) {
	dx, dy, w := map4Of[T](&call.Args[0]), map4Of[T](&call.Args[1]), map4Of[T](&call.Args[2])
	t, work := turnedOf(call.Work, &dy, &dx, [4]int{w.extent[2], w.extent[3], w.extent[0], w.extent[1]})
	moveTo(l, &hwoiTiles, t.w, w)
	c := convNHWC[T]{dst: t.x, src: t.y, add: call.Args[0].Accumulates()}
	for n := 0; n < dy.extent[0]; n += t.samples {
		count := min(t.samples, dy.extent[0]-n)
		moveTo(l, &nhwcTiles, t.y.samples(0, count), dy.samples(n, count))
		if c.add {
			moveTo(l, &nhwcTiles, t.x.samples(0, count), dx.samples(n, count))
		}
		c.dst.extent[0] = count
		c.phases(l, &t.w, windowingOf(call.Params), work)
		moveTo(l, &nchwTiles, dx.samples(n, count), t.x.samples(0, count))
	}
}

func conv2dDwAt[T Float](l simd.Level, call *Call) {
	dw, dy, x := map4Of[T](&call.Args[0]), map4Of[T](&call.Args[1]), map4Of[T](&call.Args[2])
	g := windowingOf(call.Params)
	t, work := turnedOf(call.Work, &dy, &x, [4]int{dw.extent[2], dw.extent[3], dw.extent[1], dw.extent[0]})
	if call.Args[0].Accumulates() {
		moveTo(l, &hwioTiles, t.w, dw)
	}
	c := convDwOf(t.w, t.y, t.x, dy.extent[2], g)
	for n := 0; n < dy.extent[0]; n += t.samples {
		count := min(t.samples, dy.extent[0]-n)
		moveTo(l, &nhwcTiles, t.x.samples(0, count), x.samples(n, count))
		moveTo(l, &nhwcTiles, t.y.samples(0, count), dy.samples(n, count))
		c.dy.extent[0] = count
		c.add = n > 0 || call.Args[0].Accumulates()
		c.all(l, work)
		if len(call.Args) > 3 {
			addPixels(l, Data[T](&call.Args[3]), &c.dy, n > 0 || call.Args[3].Accumulates())
		}
	}
	moveTo(l, &oihwTiles, dw, t.w)
}
