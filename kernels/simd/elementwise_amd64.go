package simd

// run calls the assembly of a loop for n elements and reports whether there is one.
func (a *runArgs) run(k loop, l Level, n, size int) bool {
	if l == Go {
		return false
	}
	lanes := l.bytes() / size
	a.vectors, a.tail = n/lanes, n%lanes
	a.mask = l.mask(a.tail, size)
	switch {
	case l == AVX512 && size == 4:
		a.avx512F32(k)
	case l == AVX512:
		a.avx512F64(k)
	case size == 4:
		a.avx2F32(k)
	default:
		a.avx2F64(k)
	}
	return true
}

// A call through a table would move the arguments to the heap.

func (a *runArgs) avx512F32(k loop) {
	switch k {
	case reluLoop:
		reluAVX512F32(a)
	case reluGradientLoop:
		reluGradientAVX512F32(a)
	case addLoop:
		addAVX512F32(a)
	case divideBytesLoop:
		divideBytesAVX512F32(a)
	case sgdLoop:
		sgdAVX512F32(a)
	case adamLoop:
		adamAVX512F32(a)
	}
}

func (a *runArgs) avx512F64(k loop) {
	switch k {
	case reluLoop:
		reluAVX512F64(a)
	case reluGradientLoop:
		reluGradientAVX512F64(a)
	case addLoop:
		addAVX512F64(a)
	case divideBytesLoop:
		divideBytesAVX512F64(a)
	case sgdLoop:
		sgdAVX512F64(a)
	case adamLoop:
		adamAVX512F64(a)
	}
}

func (a *runArgs) avx2F32(k loop) {
	switch k {
	case reluLoop:
		reluAVX2F32(a)
	case reluGradientLoop:
		reluGradientAVX2F32(a)
	case addLoop:
		addAVX2F32(a)
	case divideBytesLoop:
		divideBytesAVX2F32(a)
	case sgdLoop:
		sgdAVX2F32(a)
	case adamLoop:
		adamAVX2F32(a)
	}
}

func (a *runArgs) avx2F64(k loop) {
	switch k {
	case reluLoop:
		reluAVX2F64(a)
	case reluGradientLoop:
		reluGradientAVX2F64(a)
	case addLoop:
		addAVX2F64(a)
	case divideBytesLoop:
		divideBytesAVX2F64(a)
	case sgdLoop:
		sgdAVX2F64(a)
	case adamLoop:
		adamAVX2F64(a)
	}
}
