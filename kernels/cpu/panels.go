package cpu

import (
	"dahl/dag"
	"dahl/kernels/calls"
	"dahl/kernels/simd"
)

// A product reads a few columns of the filters at a time. Where the filters of one channel take
// kilobytes, these columns lie as far apart, in few sets of the caches and on a page each.
// Such filters are copied to the workspace, some columns at a time: a panel, which stays in the
// second-level cache while all pixels pass.

const (
	// FiltersBytes is the size of filters that are read where they are.
	FiltersBytes = 1<<20 - 1
	// panelBytes is the most of a panel of more than panelColumns bytes in a row.
	panelBytes = 512 << 10
	// panelColumns is the least bytes of a row of a panel, two vectors of AVX-512.
	panelColumns = 128
	// panelPixels is the fewest pixels for which copying pays.
	panelPixels = 64
	// blockRows is the most rows that a product keeps in registers.
	blockRows = 14
)

// panelWidth is how many of the filters are in a panel: all of them
// if they are not many. terms is the elements of a filter.
func panelWidth(elementBytes, terms, filters int) int {
	if terms*filters*elementBytes <= FiltersBytes {
		return filters
	}
	columns := panelColumns / elementBytes
	most := max(1, panelBytes/(terms*panelColumns)) * columns
	panels := dag.CeilDiv(filters, most)
	return min(filters, dag.CeilDiv(dag.CeilDiv(filters, panels), columns)*columns)
}

// panelWorkspace is the bytes of a panel, or 0 for filters that are read where they are.
func panelWorkspace(elementBytes int64, rows, columns, channels, filters int) int64 {
	terms := rows * columns * channels
	if width := panelWidth(int(elementBytes), terms, filters); width < filters {
		return int64(terms*width) * elementBytes
	}
	return 0
}

// panels is how many filters of w are taken at a time, for a number of pixels.
func panels[T calls.Float](w *calls.Map4[T], groups, pixels int) int {
	e := &w.Extent
	if groups > 1 || pixels < panelPixels {
		return e[3]
	}
	return panelWidth(calls.SizeOf[T](), e[0]*e[1]*e[2], e[3])
}

// filters is the convolution by filters r only. Its w still has all filters.
func (c *convNHWC[T]) filters(r dag.Range) convNHWC[T] {
	part := *c
	part.dst = c.dst.Part(3, r)
	if c.where.Elems != nil {
		part.where = c.where.Part(3, r)
	}
	if c.bias != nil {
		part.bias = c.bias[r.Lo:r.Hi]
	}
	return part
}

// inPanels computes the whole map, some filters at a time. It reports false, and does nothing,
// if the filters are not so large that it pays.
func (c *convNHWC[T]) inPanels(l simd.Level, work []byte) bool {
	filters, width := c.w.Extent[3], panels(&c.w, c.groups, c.dst.Extent[0]*c.rows.Pixels*c.columns.Pixels)
	if width == filters {
		return false
	}
	rows, columns := allTaps(&c.w)
	for f := 0; f < filters; f += width {
		r := dag.Range{Lo: f, Hi: min(f+width, filters)}
		p := c.filters(r)
		some := c.w.Part(3, r)
		p.w, _ = packed(work, &some, rows, columns)
		copyTaps(&p.w, &some, rows, columns)
		step := cachedSamples(&p.src, &p.dst, &p.w)
		if c.columns.Pixels < enoughRows { // pixels of several samples will be the rows of a product
			step = dag.CeilDiv(step, blockRows) * blockRows
		}
		for n := 0; n < p.dst.Extent[0]; n += step {
			q := p.samples(n, step)
			q.run(l, 0, q.rows.Pixels)
		}
	}
	return true
}

func allTaps[T calls.Float](w *calls.Map4[T]) (rows, columns calls.SomeTaps) {
	return calls.SomeTaps{Count: w.Extent[0], Every: 1}, calls.SomeTaps{Count: w.Extent[1], Every: 1}
}

// packed is room in the workspace for some rows and columns of the filters.
func packed[T calls.Float](work []byte, w *calls.Map4[T], rows, columns calls.SomeTaps) (m calls.Map4[T], rest []byte) {
	extent := [4]int{rows.Count, columns.Count, w.Extent[2], w.Extent[3]}
	elems, rest := calls.Scratch[T](work, extent[0]*extent[1]*extent[2]*extent[3])
	return calls.Packed4(elems, extent), rest
}

// copy takes some rows and columns of filters w.
func copyTaps[T calls.Float](m, w *calls.Map4[T], rows, columns calls.SomeTaps) {
	for i := range rows.Count {
		for j := range columns.Count {
			for c := range m.Extent[2] {
				from := w.At(rows.First+i*rows.Every, columns.First+j*columns.Every, c, 0)
				copy(m.Elems[m.At(i, j, c, 0):], w.Elems[from:][:m.Extent[3]])
			}
		}
	}
}
