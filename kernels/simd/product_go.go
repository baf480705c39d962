package simd

// Plain Go computes a product as rank-4 updates of two rows of C at a time: per
// element of C eight multiplications and additions for six loads and two stores, with
// the eight scalars of A in registers. A 4×4 tile of C in registers, the usual
// choice, spills on amd64, where Go has 15 scalar float registers, and runs at half
// speed.

// Blocks of B of goRows×goColumns elements (64 or 128 KB) stay in the L2 cache while
// all rows of C pass over them; two rows of C stay in L1.
const (
	goRows    = 64
	goColumns = 256
)

// runGo is the product in plain Go.
func (p *Product[T]) runGo() {
	for g := range max(p.Groups, 1) {
		c, a := p.C[g*p.CGroup:], p.A[g*p.AGroup:]
		p.startGo(c)
		for j := 0; j < p.N; j += goColumns {
			width := min(goColumns, p.N-j)
			for b := range p.Batch {
				for q := 0; q < p.K; q += goRows {
					p.blockGo(c[j:], a[b*p.ABatch+q*p.AStep:], p.B[b*p.BBatch+q*p.BRow+j:], width, min(goRows, p.K-q))
				}
			}
		}
		p.endGo(c, g)
	}
}

// startGo sets the rows of c to what the sums start from.
func (p *Product[T]) startGo(c []T) {
	if p.Accumulate {
		return
	}
	for i := range p.M {
		row := c[i*p.CRow:][:p.N]
		if p.Bias != nil {
			copy(row, p.Bias)
		} else {
			clear(row)
		}
	}
}

// endGo replaces sums of group g by zero as asked.
func (p *Product[T]) endGo(c []T, g int) {
	for i := range p.M {
		row := c[i*p.CRow:][:p.N]
		if p.ReLU {
			for j, v := range row {
				if v < 0 {
					row[j] = 0
				}
			}
		}
		if p.Where != nil {
			for j, v := range p.Where[g*p.WhereGroup+i*p.WhereRow:][:p.N] {
				if !(v > 0) {
					row[j] = 0
				}
			}
		}
	}
}

// blockGo adds the products of depth steps to width columns of all rows of c.
func (p *Product[T]) blockGo(c, a, b []T, width, depth int) {
	i := 0
	for ; i+2 <= p.M; i += 2 {
		c0, c1 := c[i*p.CRow:][:width], c[(i+1)*p.CRow:][:width]
		addRows2(c0, c1, a[i*p.ARow:], p.ARow, p.AStep, b, p.BRow, depth)
	}
	if i < p.M {
		addRow(c[i*p.CRow:][:width], a[i*p.ARow:], p.AStep, b, p.BRow, depth)
	}
}

// addRows2 adds Σ_q a[q·step]·b[q·stride:] to c0 and the same with the next row of a
// to c1.
func addRows2[T Float](c0, c1, a []T, row, step int, b []T, stride, depth int) {
	n := len(c0)
	c1 = c1[:n]
	q := 0
	for ; q+4 <= depth; q += 4 {
		at := q * step
		a00, a01, a02, a03 := a[at], a[at+step], a[at+2*step], a[at+3*step]
		at += row
		a10, a11, a12, a13 := a[at], a[at+step], a[at+2*step], a[at+3*step]
		at = q * stride
		b0, b1 := b[at:at+n], b[at+stride:at+stride+n]
		at += 2 * stride
		b2, b3 := b[at:at+n], b[at+stride:at+stride+n]
		for j := range c0 {
			s, t := c0[j], c1[j]
			x := b0[j]
			s += a00 * x
			t += a10 * x
			x = b1[j]
			s += a01 * x
			t += a11 * x
			x = b2[j]
			s += a02 * x
			t += a12 * x
			x = b3[j]
			s += a03 * x
			t += a13 * x
			c0[j], c1[j] = s, t
		}
	}
	for ; q < depth; q++ {
		a0, a1 := a[q*step], a[q*step+row]
		for j, x := range b[q*stride : q*stride+n] {
			c0[j] += a0 * x
			c1[j] += a1 * x
		}
	}
}

// addRow is addRows2 for one row.
func addRow[T Float](c, a []T, step int, b []T, stride, depth int) {
	n := len(c)
	q := 0
	for ; q+4 <= depth; q += 4 {
		at := q * step
		a0, a1, a2, a3 := a[at], a[at+step], a[at+2*step], a[at+3*step]
		at = q * stride
		b0, b1 := b[at:at+n], b[at+stride:at+stride+n]
		at += 2 * stride
		b2, b3 := b[at:at+n], b[at+stride:at+stride+n]
		for j := range c {
			s := c[j]
			s += a0 * b0[j]
			s += a1 * b1[j]
			s += a2 * b2[j]
			s += a3 * b3[j]
			c[j] = s
		}
	}
	for ; q < depth; q++ {
		a0 := a[q*step]
		for j, x := range b[q*stride : q*stride+n] {
			c[j] += a0 * x
		}
	}
}
