package simd

// Run computes the product at a level.
func (p *Product[T]) Run(l Level) {
	p.check()
	p.runGo()
}

// runGo is the product in plain Go.
func (p *Product[T]) runGo() {
	for i := range p.M {
		c := p.C[i*p.CRow:][:p.N]
		switch {
		case p.Accumulate:
		case p.Bias != nil:
			copy(c, p.Bias)
		default:
			clear(c)
		}
		for b := range p.Batch {
			for q := range p.K {
				a := p.A[b*p.ABatch+i*p.ARow+q*p.AStep]
				for j, v := range p.B[b*p.BBatch+q*p.BRow:][:p.N] {
					c[j] += a * v
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
}
