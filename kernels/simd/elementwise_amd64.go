package simd

var loops = [...]forms[runArgs]{
	reluLoop:          {AVX2: {reluAVX2F32, reluAVX2F64}, AVX512: {reluAVX512F32, reluAVX512F64}},
	reluGradientLoop:  {AVX2: {reluGradientAVX2F32, reluGradientAVX2F64}, AVX512: {reluGradientAVX512F32, reluGradientAVX512F64}},
	addLoop:           {AVX2: {addAVX2F32, addAVX2F64}, AVX512: {addAVX512F32, addAVX512F64}},
	divideBytesLoop:   {AVX2: {divideBytesAVX2F32, divideBytesAVX2F64}, AVX512: {divideBytesAVX512F32, divideBytesAVX512F64}},
	sgdLoop:           {AVX2: {sgdAVX2F32, sgdAVX2F64}, AVX512: {sgdAVX512F32, sgdAVX512F64}},
	adamLoop:          {AVX2: {adamAVX2F32, adamAVX2F64}, AVX512: {adamAVX512F32, adamAVX512F64}},
	functionLoops:     {AVX2: {tanhAVX2F32, tanhAVX2F64}, AVX512: {tanhAVX512F32, tanhAVX512F64}},
	functionLoops + 1: {AVX2: {tanhGradientAVX2F32, tanhGradientAVX2F64}, AVX512: {tanhGradientAVX512F32, tanhGradientAVX512F64}},
	functionLoops + 2: {AVX2: {sigmoidAVX2F32, sigmoidAVX2F64}, AVX512: {sigmoidAVX512F32, sigmoidAVX512F64}},
	functionLoops + 3: {AVX2: {sigmoidGradientAVX2F32, sigmoidGradientAVX2F64}, AVX512: {sigmoidGradientAVX512F32, sigmoidGradientAVX512F64}},
	functionLoops + 4: {AVX2: {geluAVX2F32, geluAVX2F64}, AVX512: {geluAVX512F32, geluAVX512F64}},
	functionLoops + 5: {AVX2: {geluGradientAVX2F32, geluGradientAVX2F64}, AVX512: {geluGradientAVX512F32, geluGradientAVX512F64}},
	functionLoops + 6: {AVX2: {geluTanhAVX2F32, geluTanhAVX2F64}, AVX512: {geluTanhAVX512F32, geluTanhAVX512F64}},
	functionLoops + 7: {AVX2: {geluTanhGradientAVX2F32, geluTanhGradientAVX2F64}, AVX512: {geluTanhGradientAVX512F32, geluTanhGradientAVX512F64}},
	functionLoops + 8: {AVX2: {leakyReLUAVX2F32, leakyReLUAVX2F64}, AVX512: {leakyReLUAVX512F32, leakyReLUAVX512F64}},
	functionLoops + 9: {AVX2: {leakyReLUGradientAVX2F32, leakyReLUGradientAVX2F64}, AVX512: {leakyReLUGradientAVX512F32, leakyReLUGradientAVX512F64}},
}

// run calls the assembly of a loop for n elements and reports whether there is one.
func (a *runArgs) run(k loop, l Level, n, size int) bool {
	if l == Go {
		return false
	}
	lanes := l.bytes() / size
	a.vectors, a.tail = n/lanes, n%lanes
	a.mask = l.mask(a.tail, size)
	loops[k].call(l, size, a)
	return true
}
