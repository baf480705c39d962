package kernels

// The "go" convolutions take a block of output pixels that fits the cache. They gather the inputs
// under each tap of the window into a panel of the workspace: one row per plane and tap, one
// column per pixel, zeros outside the image. Then they multiply the packed filters with the
// panel. Forward and input gradient are one algorithm over different lattices of pixels. At
// stride s the gradient falls into s×s phases, each an ordinary convolution of dy with every s-th
// row and column of the filters (Dumoulin and Visin, arXiv:1603.07285, section 4).

const (
	panelPixels   = 512     // most pixels of a block that has more than one row
	panelElements = 1 << 15 // most elements of a panel that has more than one row of pixels
)

// axis relates, for rows or for columns, pixels of the result, taps and pixels of the source.
// Pixel u of the lattice is at first + u·step of the result, and tap t is at tap0 + t·tapStep of
// the filter. Together they meet the source at from + u·pixelStep + t·sourceStep, if that is
// within extent.
type axis struct {
	pixels, first, step int
	taps, tap0, tapStep int
	from, pixelStep     int
	sourceStep, extent  int
}

// forwardAxis is the lattice of conv2d.
func forwardAxis(out, in, k, pad, stride int) axis {
	return axis{
		pixels: out, step: 1,
		taps: k, tapStep: 1,
		from: -pad, pixelStep: stride, sourceStep: 1, extent: in,
	}
}

// backwardAxis is the lattice of the gradient for the pixels of a phase, those at phase,
// phase+stride, …: dx[a] meets dy[u] under tap i where a = u·stride+i-pad.
func backwardAxis(in, out, k, pad, stride, phase int) axis {
	tap0 := (phase + pad) % stride
	return axis{
		pixels: max(0, (in-phase+stride-1)/stride), first: phase, step: stride,
		taps: max(0, (k-tap0+stride-1)/stride), tap0: tap0, tapStep: stride,
		from: (phase + pad - tap0) / stride, pixelStep: 1, sourceStep: -1, extent: out,
	}
}

// inside returns the pixels [lo, hi) for which tap t lies within the source.
func (a *axis) inside(t int) (lo, hi int) {
	at := a.from + t*a.sourceStep
	if at < 0 {
		lo = (-at + a.pixelStep - 1) / a.pixelStep
	}
	if at < a.extent {
		hi = (a.extent - at + a.pixelStep - 1) / a.pixelStep
	}
	hi = min(hi, a.pixels)
	return min(lo, hi), hi
}

// panelRows is how many rows of the lattice a panel of the given depth takes.
func panelRows(rows, columns, depth int) int {
	pixels := min(panelPixels, panelElements/max(depth, 1))
	return max(1, min(rows, pixels/max(columns, 1)))
}

func conv2dGo[T Float](call *Call) {
	y, x, w := map4Of[T](&call.Args[0]), map4Of[T](&call.Args[1]), map4Of[T](&call.Args[2])
	pad, stride, k := int(call.Params[0]), int(call.Params[1]), w.extent[2]
	var b []T
	if len(call.Args) > 3 {
		b = Data[T](&call.Args[3])
	}
	rows := forwardAxis(y.extent[2], x.extent[2], k, pad, stride)
	columns := forwardAxis(y.extent[3], x.extent[3], k, pad, stride)
	planes, depth := x.extent[1], x.extent[1]*k*k
	filters, rest := scratch[T](call.Work, y.extent[1]*depth)
	at := 0
	for f := range y.extent[1] {
		for c := range planes {
			for i := range k {
				at += copy(filters[at:], w.elems[w.at(f, c, i, 0):][:k])
			}
		}
	}
	convolve(&y, &x, filters, b, &rows, &columns, false, rest)
}

func conv2dGoWorkspace(s *Spec) int64 {
	y, w := s.Operands[0].Shape, s.Operands[2].Shape
	depth := w[1] * w[2] * w[3]
	pixels := panelRows(y[2], y[3], depth) * y[3]
	return int64(w[0]*depth+(depth+w[0])*pixels) * s.Type.SizeBytes()
}

func conv2dDxGo[T Float](call *Call) {
	dx, dy, w := map4Of[T](&call.Args[0]), map4Of[T](&call.Args[1]), map4Of[T](&call.Args[2])
	pad, stride, k := int(call.Params[0]), int(call.Params[1]), w.extent[2]
	for p := range min(stride, dx.extent[2]) {
		rows := backwardAxis(dx.extent[2], dy.extent[2], k, pad, stride, p)
		for q := range min(stride, dx.extent[3]) {
			columns := backwardAxis(dx.extent[3], dy.extent[3], k, pad, stride, q)
			filters, rest := scratch[T](call.Work, dx.extent[1]*w.extent[0]*rows.taps*columns.taps)
			packPhase(filters, &w, &rows, &columns)
			convolve(&dx, &dy, filters, nil, &rows, &columns, call.Args[0].Accumulates(), rest)
		}
	}
}

// packPhase gathers the taps of a phase of all filters, channel by channel.
func packPhase[T Float](packed []T, w *map4[T], rows, columns *axis) {
	at := 0
	for c := range w.extent[1] {
		for f := range w.extent[0] {
			for i := range rows.taps {
				for j := range columns.taps {
					packed[at] = w.elems[w.at(f, c, rows.tap0+i*rows.tapStep, columns.tap0+j*columns.tapStep)]
					at++
				}
			}
		}
	}
}

// conv2dDxGoWorkspace is the largest workspace of any phase.
func conv2dDxGoWorkspace(s *Spec) int64 {
	dx, dy, w := s.Operands[0].Shape, s.Operands[1].Shape, s.Operands[2].Shape
	pad, stride := int(s.Param("pad")), int(s.Param("stride"))
	most := 0
	for p := range min(stride, dx[2]) {
		rows := backwardAxis(dx[2], dy[2], w[2], pad, stride, p)
		for q := range min(stride, dx[3]) {
			columns := backwardAxis(dx[3], dy[3], w[2], pad, stride, q)
			depth := w[0] * rows.taps * columns.taps
			pixels := panelRows(rows.pixels, columns.pixels, depth) * columns.pixels
			most = max(most, dx[1]*depth+(depth+dx[1])*pixels)
		}
	}
	return int64(most) * s.Type.SizeBytes()
}

// convolve sets or adds the products of the filters (one row per plane of dst, of src.extent[1] ×
// rows.taps × columns.taps) with src at the pixels of a lattice. The sum of a pixel is added up
// from zero in the order of plane and tap. Then the bias, if any, is added to it, and finally the
// sum to dst.
func convolve[T Float](dst, src *map4[T], filters, bias []T, rows, columns *axis, add bool, work []byte) {
	m, depth := dst.extent[1], src.extent[1]*rows.taps*columns.taps
	block := panelRows(rows.pixels, columns.pixels, depth)
	panel, work := scratch[T](work, depth*block*columns.pixels)
	sums, _ := scratch[T](work, m*block*columns.pixels)
	for n := range dst.extent[0] {
		for u := 0; u < rows.pixels; u += block {
			height := min(block, rows.pixels-u)
			pixels := height * columns.pixels
			gatherTaps(panel, src, n, rows, columns, u, height)
			clear(sums[:m*pixels])
			if depth > 0 { // a phase may have no taps
				addProduct(matrix[T]{sums, pixels, 1}, matrix[T]{filters, depth, 1}, matrix[T]{panel, pixels, 1}, m, depth, pixels)
			}
			for c := range m {
				var b T
				if bias != nil {
					b = bias[c]
				}
				for r := range height {
					from := sums[c*pixels+r*columns.pixels:][:columns.pixels]
					at := dst.at(n, c, rows.first+(u+r)*rows.step, columns.first)
					storeRow(dst.elems[at:], columns.step, from, b, add)
				}
			}
		}
	}
}

// storeRow sets or adds from[i]+b at to[i·step].
func storeRow[T Float](to []T, step int, from []T, b T, add bool) {
	if step == 1 && !add {
		to = to[:len(from)]
		for i, v := range from {
			to[i] = v + b
		}
		return
	}
	for i, v := range from {
		put(&to[i*step], v+b, add)
	}
}

// gatherTaps fills a panel for height rows of the lattice from u: per plane of
// sample n of src and tap one row, with the elements under the tap.
func gatherTaps[T Float](panel []T, src *map4[T], n int, rows, columns *axis, u, height int) {
	width := columns.pixels
	for c := range src.extent[1] {
		for i := range rows.taps {
			top, bottom := rows.inside(i)
			for j := range columns.taps {
				left, right := columns.inside(j)
				for r := u; r < u+height; r++ {
					row := panel[:width]
					panel = panel[width:]
					if r < top || r >= bottom || left == right {
						clear(row)
						continue
					}
					at := src.at(n, c, rows.from+r*rows.pixelStep+i*rows.sourceStep,
						columns.from+left*columns.pixelStep+j*columns.sourceStep)
					clear(row[:left])
					gatherRow(row[left:right], src.elems[at:], columns.pixelStep)
					clear(row[right:])
				}
			}
		}
	}
}

// gatherRow copies every step-th element of from.
func gatherRow[T Float](to, from []T, step int) {
	if step == 1 {
		copy(to, from)
		return
	}
	for i := range to {
		to[i] = from[i*step]
	}
}
