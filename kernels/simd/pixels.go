package simd

// Pixels is products of pixels of some channels, as in a depthwise convolution:
//
//	C[p,n] += A[p,n]·B[p,n]     p < Pixels, n < N
//
// with C[p,n] = C[p·CPixel + n] and the others alike. Where CPixel is 0, the products of all pixels
// are added to one, in their order; a factor with a distance of 0 is the same for all.
type Pixels[T Float] struct {
	N, Pixels              int
	C, A, B                []T
	CPixel, APixel, BPixel int
}

// Run computes the products at a level.
func (p *Pixels[T]) Run(l Level) {
	last := func(step int) int { return (p.Pixels-1)*step + p.N }
	if p.N < 1 || p.Pixels < 1 || min(p.CPixel, p.APixel, p.BPixel) < 0 ||
		last(p.CPixel) > len(p.C) || last(p.APixel) > len(p.A) || last(p.BPixel) > len(p.B) {
		panic("simd: products of no pixels, or of pixels beyond their operand")
	}
	if l != Go && p.runVectors(l) {
		return
	}
	for i := range p.Pixels {
		c, a, b := p.C[i*p.CPixel:][:p.N], p.A[i*p.APixel:][:p.N], p.B[i*p.BPixel:][:p.N]
		for n, v := range a {
			c[n] += v * b[n]
		}
	}
}
