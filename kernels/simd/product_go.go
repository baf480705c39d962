package simd

// runGo is the product in plain Go.
func (p *Product[T]) runGo() {
	for g := range max(p.Groups, 1) {
		for i := range p.M {
			c := p.C[g*p.CGroup+i*p.CRow:][:p.N]
			p.rowGo(c, p.A[g*p.AGroup+i*p.ARow:])
			if p.Where == nil {
				continue
			}
			for j, v := range p.Where[g*p.WhereGroup+i*p.WhereRow:][:p.N] {
				if !(v > 0) {
					c[j] = 0
				}
			}
		}
	}
}

// rowGo computes one row of C from one of A.
func (p *Product[T]) rowGo(c, a []T) {
	switch {
	case p.Accumulate:
	case p.Bias != nil:
		copy(c, p.Bias)
	default:
		clear(c)
	}
	for b := range p.Batch {
		for q := range p.K {
			scalar := a[b*p.ABatch+q*p.AStep]
			for j, v := range p.B[b*p.BBatch+q*p.BRow:][:p.N] {
				c[j] += scalar * v
			}
		}
	}
	if p.ReLU {
		for j, v := range c {
			if v < 0 {
				c[j] = 0
			}
		}
	}
}
