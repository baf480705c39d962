package simd

import "unsafe"

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
	if l != Go {
		p.runVectors(l)
		return
	}
	for i := range p.Pixels {
		c, a, b := p.C[i*p.CPixel:][:p.N], p.A[i*p.APixel:][:p.N], p.B[i*p.BPixel:][:p.N]
		for n, v := range a {
			c[n] += v * b[n]
		}
	}
}

// pixelArgs is one call of the assembly. The order of the fields is known to gen/pixels.go.
type pixelArgs struct {
	c, a, b                unsafe.Pointer
	pixels                 int
	cPixel, aPixel, bPixel int // in bytes
	mask                   uintptr
}

// runVectors takes a vector of channels at a time.
func (p *Pixels[T]) runVectors(l Level) {
	size, loop := size(p.C), &multiplyAdd
	if p.CPixel == 0 {
		loop = &multiplySum
	}
	lanes := l.bytes() / size
	for n := 0; n < p.N; n += lanes {
		a := pixelArgs{
			pointer(p.C[n:]), pointer(p.A[n:]), pointer(p.B[n:]), p.Pixels,
			p.CPixel * size, p.APixel * size, p.BPixel * size, l.mask(min(p.N-n, lanes), size),
		}
		loop.call(l, size, &a)
	}
}
