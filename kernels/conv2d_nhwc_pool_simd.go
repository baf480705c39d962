package kernels

import (
	"unsafe"

	"dahl/kernels/simd"
)

// The vector variants pool a few rows of the convolution at a time in the workspace,
// and scatter a few rows of the pooled gradient there before they multiply them with
// the image, so that these rows stay in the nearest caches.

const (
	// poolRowsBytes is what the rows in the workspace take at most, beyond those of one
	// row of windows.
	poolRowsBytes = 24 << 10
	// overlapRowsBytes is that for windows that overlap: the rows between two blocks
	// are computed twice.
	overlapRowsBytes = 256 << 10
)

// poolRows is how many of the rows of windows are computed at a time, from rows of the
// given size in bytes.
func poolRows(windows, size, step, bytes int) int {
	limit := poolRowsBytes
	if step < size {
		limit = overlapRowsBytes
	}
	return max(1, min(windows, (limit/bytes-size)/step+1))
}

// poolWorkspace is the workspace for y, the operand with the pooled map.
func poolWorkspace(y int) func(s *Spec) int64 {
	return func(s *Spec) int64 {
		pooled, size, step := s.Operands[y].Shape, int(s.Param("size")), int(s.Param("step"))
		bytes := covered(pooled[2], size, step) * pooled[3] * int(s.Type.SizeBytes())
		return int64(covered(poolRows(pooled[1], size, step, bytes), size, step) * bytes)
	}
}

// poolBlock takes the rows of the convolution, without those columns that no window
// holds, from the workspace, and returns how many rows of windows they are.
func poolBlock[T Float](work []byte, pooled *map4[T], size, step int) (rows map4[T], windows int) {
	var zero T
	width := covered(pooled.extent[2], size, step)
	windows = poolRows(pooled.extent[1], size, step, width*pooled.extent[3]*int(unsafe.Sizeof(zero)))
	extent := [4]int{1, covered(windows, size, step), width, pooled.extent[3]}
	elems, _ := scratch[T](work, extent[1]*extent[2]*extent[3])
	return packed4(elems, extent), windows
}

func conv2dNHWCPoolAt[T Float](l simd.Level, call *Call) {
	y, index := map4Of[T](&call.Args[0]), map4Of[uint8](&call.Args[1])
	x, w := map4Of[T](&call.Args[2]), map4Of[T](&call.Args[3])
	pad, stride, size, step := int(call.Params[0]), int(call.Params[1]), int(call.Params[2]), int(call.Params[3])
	block, windows := poolBlock(call.Work, &y, size, step)
	c := convNHWC[T]{
		dst: block, src: x, w: w,
		rows:    forwardLattice(covered(y.extent[1], size, step), x.extent[1], w.extent[0], pad, stride),
		columns: forwardLattice(block.extent[2], x.extent[2], w.extent[0], pad, stride),
	}
	if len(call.Args) > 4 {
		c.bias = Data[T](&call.Args[4])
	}
	p := simd.MaxPool[T]{
		Windows: y.extent[2], Channels: y.extent[3], Size: size, Step: step, ReLU: true,
		YRow: y.stride[1], YPixel: y.stride[2], IndexRow: index.stride[1], IndexPixel: index.stride[2],
		X: block.elems, XRow: block.stride[1], XPixel: block.stride[2],
	}
	for n := range y.extent[0] {
		c.src.elems = x.elems[n*x.stride[0]:]
		for u := 0; u < y.extent[1]; u += windows {
			p.Rows = min(windows, y.extent[1]-u)
			c.rows.first = -u * step // the workspace begins there
			c.run(l, u*step, u*step+covered(p.Rows, size, step))
			p.Y, p.Index = y.elems[y.at(n, u, 0, 0):], index.elems[index.at(n, u, 0, 0):]
			p.Run(l)
		}
	}
}

func conv2dNHWCPoolDwAt[T Float](l simd.Level, call *Call) {
	dw, dy := map4Of[T](&call.Args[0]), map4Of[T](&call.Args[1])
	index, x := map4Of[uint8](&call.Args[2]), map4Of[T](&call.Args[3])
	pad, stride, size, step := int(call.Params[0]), int(call.Params[1]), int(call.Params[2]), int(call.Params[3])
	block, windows := poolBlock(call.Work, &dy, size, step)
	c := convDwNHWC[T]{
		dw: dw, dy: block, x: x,
		rows:    forwardLattice(covered(dy.extent[1], size, step), x.extent[1], dw.extent[0], pad, stride),
		columns: forwardLattice(block.extent[2], x.extent[2], dw.extent[0], pad, stride),
	}
	p := simd.Unpool[T]{
		Windows: dy.extent[2], Channels: dy.extent[3], Size: size, Step: step, Accumulate: step != size,
		YRow: dy.stride[1], YPixel: dy.stride[2], IndexRow: index.stride[1], IndexPixel: index.stride[2],
		X: block.elems, XRow: block.stride[1], XPixel: block.stride[2],
	}
	if !call.Args[0].Accumulates() {
		dw.clear4()
	}
	add := len(call.Args) > 4 && call.Args[4].Accumulates()
	for n := range dy.extent[0] {
		c.x.elems = x.elems[n*x.stride[0]:]
		for u := 0; u < dy.extent[1]; u += windows {
			p.Rows = min(windows, dy.extent[1]-u)
			rows := covered(p.Rows, size, step)
			if p.Accumulate {
				clear(block.elems)
			}
			p.Y, p.Index = dy.elems[dy.at(n, u, 0, 0):], index.elems[index.at(n, u, 0, 0):]
			p.Run(l)
			c.rows.first = -u * step
			c.run(l, u*step, u*step+rows)
			if len(call.Args) > 4 {
				db := Data[T](&call.Args[4])
				simd.ColumnSums(l, db, block.elems, rows*block.extent[2], block.extent[3], add)
				add = true
			}
		}
	}
}
