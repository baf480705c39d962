package simd

import "unsafe"

// pixelArgs is one call of the assembly. The order of the fields is known to gen/pixels.go.
type pixelArgs struct {
	c, a, b                unsafe.Pointer
	pixels                 int
	cPixel, aPixel, bPixel int // in bytes
	mask                   uintptr
}

var (
	multiplyAdd = forms[pixelArgs]{AVX2: {multiplyAddAVX2F32, multiplyAddAVX2F64}, AVX512: {multiplyAddAVX512F32, multiplyAddAVX512F64}}
	multiplySum = forms[pixelArgs]{AVX2: {multiplySumAVX2F32, multiplySumAVX2F64}, AVX512: {multiplySumAVX512F32, multiplySumAVX512F64}}
)

// runVectors takes a vector of channels at a time.
func (p *Pixels[T]) runVectors(l Level) bool {
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
	return true
}
