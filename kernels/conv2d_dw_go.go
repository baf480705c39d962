package kernels

// conv2dDwGo multiplies dy, one block of pixels after the other, with a panel of the
// inputs under the window: one row per pixel, one column per plane and tap. The sums
// over all samples and pixels are added up from zero in this order in the workspace,
// then stored or added to dw.
func conv2dDwGo[T Float](call *Call) {
	dw, dy, x := map4Of[T](&call.Args[0]), map4Of[T](&call.Args[1]), map4Of[T](&call.Args[2])
	pad, stride, k := int(call.Params[0]), int(call.Params[1]), dw.extent[2]
	rows := forwardAxis(dy.extent[2], x.extent[2], k, pad, stride)
	columns := forwardAxis(dy.extent[3], x.extent[3], k, pad, stride)
	filters, planes := dw.extent[0], dw.extent[1]
	depth := planes * k * k
	sums, rest := scratch[T](call.Work, filters*depth)
	clear(sums)

	// Rows of dy that do not follow each other in memory are taken one by one.
	block := 1
	if dy.stride[2] == columns.pixels {
		block = panelRows(rows.pixels, columns.pixels, depth)
	}
	panel, _ := scratch[T](rest, depth*block*columns.pixels)
	for n := range dy.extent[0] {
		for u := 0; u < rows.pixels; u += block {
			height := min(block, rows.pixels-u)
			gatherPixels(panel, &x, n, &rows, &columns, u, height)
			addProduct(matrix[T]{sums, depth, 1}, matrix[T]{dy.elems[dy.at(n, 0, u, 0):], dy.stride[1], 1},
				matrix[T]{panel, depth, 1}, filters, height*columns.pixels, depth)
		}
	}

	for f := range filters {
		for c := range planes {
			for i := range k {
				from := sums[((f*planes+c)*k+i)*k:][:k]
				storeRow(dw.elems[dw.at(f, c, i, 0):], 1, from, 0, call.Args[0].Accumulates())
			}
		}
	}
	if len(call.Args) > 3 {
		sumMaps(&call.Args[3], &dy)
	}
}

func conv2dDwGoWorkspace(s *Spec) int64 {
	dw, dy := s.Operands[0].Shape, s.Operands[1].Shape
	depth := dw[1] * dw[2] * dw[3]
	pixels := panelRows(dy[2], dy[3], depth) * dy[3]
	return int64(depth*(dw[0]+pixels)) * s.Type.SizeBytes()
}

// gatherPixels is gatherTaps transposed: one row per pixel, one column per plane
// and tap.
func gatherPixels[T Float](panel []T, src *map4[T], n int, rows, columns *axis, u, height int) {
	depth := src.extent[1] * rows.taps * columns.taps
	d := 0
	for c := range src.extent[1] {
		for i := range rows.taps {
			top, bottom := rows.inside(i)
			for j := range columns.taps {
				left, right := columns.inside(j)
				at := d
				for r := u; r < u+height; r++ {
					if r < top || r >= bottom || left == right {
						at = spread(panel, at, depth, nil, 0, columns.pixels)
						continue
					}
					from := src.at(n, c, rows.from+r*rows.pixelStep+i, columns.from+left*columns.pixelStep+j)
					at = spread(panel, at, depth, nil, 0, left)
					at = spread(panel, at, depth, src.elems[from:], columns.pixelStep, right-left)
					at = spread(panel, at, depth, nil, 0, columns.pixels-right)
				}
				d++
			}
		}
	}
}

// spread writes n elements of from, step apart, or zeros if from is nil, to
// positions at, at+stride, … of to and returns the position after.
func spread[T Float](to []T, at, stride int, from []T, step, n int) int {
	if from == nil {
		for range n {
			to[at] = 0
			at += stride
		}
		return at
	}
	for i := range n {
		to[at] = from[i*step]
		at += stride
	}
	return at
}
