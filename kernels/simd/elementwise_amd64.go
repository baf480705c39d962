package simd

var loops = [...]forms[runArgs]{
	reluLoop:         {AVX2: {reluAVX2F32, reluAVX2F64}, AVX512: {reluAVX512F32, reluAVX512F64}},
	reluGradientLoop: {AVX2: {reluGradientAVX2F32, reluGradientAVX2F64}, AVX512: {reluGradientAVX512F32, reluGradientAVX512F64}},
	addLoop:          {AVX2: {addAVX2F32, addAVX2F64}, AVX512: {addAVX512F32, addAVX512F64}},
	divideBytesLoop:  {AVX2: {divideBytesAVX2F32, divideBytesAVX2F64}, AVX512: {divideBytesAVX512F32, divideBytesAVX512F64}},
	sgdLoop:          {AVX2: {sgdAVX2F32, sgdAVX2F64}, AVX512: {sgdAVX512F32, sgdAVX512F64}},
	adamLoop:         {AVX2: {adamAVX2F32, adamAVX2F64}, AVX512: {adamAVX512F32, adamAVX512F64}},
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
