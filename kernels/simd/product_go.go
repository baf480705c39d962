package simd

// Plain Go computes a product as rank-4 updates of two rows of C at a time. Per element of C that
// is eight multiplications and additions for six loads and two stores, with the eight scalars of
// A in registers. The usual choice, a 4×4 tile of C in registers, spills on amd64, where Go has
// 15 scalar float registers, and runs at half speed.

// Blocks of B of goRows×goColumns elements (64 or 128 KB) stay in the L2 cache while
// all rows of C pass over them; two rows of C stay in L1.
const (
	goRows    = 64
	goColumns = 256
)

// steps are consecutive steps of the sum, across the batch, with their positions in A and in B.
type steps struct {
	a, b  [goRows]int
	count int
}

// runGo is the product in plain Go.
func (p *Product[T]) runGo() {
	var s steps
	all := max(p.Outer, 1) * p.Batch * p.K
	for g := range max(p.Groups, 1) {
		c, a := p.C[g*p.CGroup:], p.A[g*p.AGroup:]
		p.startGo(c)
		for first := 0; first < all; first += goRows {
			if g == 0 || all > goRows {
				p.take(&s, first)
			}
			for j := 0; j < p.N; j += goColumns {
				p.blockGo(c[j:], a, p.B[j:], min(goColumns, p.N-j), &s)
			}
		}
		p.endGo(c, g)
	}
}

// take sets s to the steps from first, at most goRows.
func (p *Product[T]) take(s *steps, first int) {
	s.count = min(goRows, max(p.Outer, 1)*p.Batch*p.K-first)
	o, b, q := first/(p.K*p.Batch), first/p.K%p.Batch, first%p.K
	for i := range s.count {
		s.a[i], s.b[i] = o*p.AOuter+b*p.ABatch+q*p.AStep, o*p.BOuter+b*p.BBatch+q*p.BRow
		if q++; q == p.K {
			b, q = b+1, 0
		}
		if b == p.Batch {
			o, b = o+1, 0
		}
	}
}

// startGo sets the rows of c to the initial values of the sums.
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

// endGo sets the required sums of group g to zero.
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

// blockGo adds the products of some steps to width columns of all rows of c.
func (p *Product[T]) blockGo(c, a, b []T, width int, s *steps) {
	i := 0
	for ; i+2 <= p.M; i += 2 {
		c0, c1 := c[i*p.CRow:][:width], c[(i+1)*p.CRow:][:width]
		addRows2(c0, c1, a[i*p.ARow:], a[(i+1)*p.ARow:], b, s)
	}
	if i < p.M {
		addRow(c[i*p.CRow:][:width], a[i*p.ARow:], b, s)
	}
}

// addRows2 adds the products of a0 with rows of b to c0, and those of a1 to c1.
func addRows2[T Float](c0, c1, a0, a1, b []T, s *steps) {
	n := len(c0)
	c1 = c1[:n]
	q := 0
	for ; q+4 <= s.count; q += 4 {
		at, row := s.a[q:q+4], s.b[q:q+4]
		a00, a01, a02, a03 := a0[at[0]], a0[at[1]], a0[at[2]], a0[at[3]]
		a10, a11, a12, a13 := a1[at[0]], a1[at[1]], a1[at[2]], a1[at[3]]
		b0, b1, b2, b3 := b[row[0]:][:n], b[row[1]:][:n], b[row[2]:][:n], b[row[3]:][:n]
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
	for ; q < s.count; q++ {
		v, w := a0[s.a[q]], a1[s.a[q]]
		for j, x := range b[s.b[q]:][:n] {
			c0[j] += v * x
			c1[j] += w * x
		}
	}
}

// addRow is addRows2 for one row.
func addRow[T Float](c, a, b []T, s *steps) {
	n := len(c)
	q := 0
	for ; q+4 <= s.count; q += 4 {
		at, row := s.a[q:q+4], s.b[q:q+4]
		a0, a1, a2, a3 := a[at[0]], a[at[1]], a[at[2]], a[at[3]]
		b0, b1, b2, b3 := b[row[0]:][:n], b[row[1]:][:n], b[row[2]:][:n], b[row[3]:][:n]
		for j := range c {
			s := c[j]
			s += a0 * b0[j]
			s += a1 * b1[j]
			s += a2 * b2[j]
			s += a3 * b3[j]
			c[j] = s
		}
	}
	for ; q < s.count; q++ {
		v := a[s.a[q]]
		for j, x := range b[s.b[q]:][:n] {
			c[j] += v * x
		}
	}
}
