package simd

var channelLoops = [...]forms[channelArgs]{
	channelSumsLoop:         {AVX2: {channelSumsAVX2F32, channelSumsAVX2F64}, AVX512: {channelSumsAVX512F32, channelSumsAVX512F64}},
	channelSquaresLoop:      {AVX2: {channelSquaresAVX2F32, channelSquaresAVX2F64}, AVX512: {channelSquaresAVX512F32, channelSquaresAVX512F64}},
	channelNormaliseLoop:    {AVX2: {channelNormaliseAVX2F32, channelNormaliseAVX2F64}, AVX512: {channelNormaliseAVX512F32, channelNormaliseAVX512F64}},
	channelGradientSumsLoop: {AVX2: {channelGradientSumsAVX2F32, channelGradientSumsAVX2F64}, AVX512: {channelGradientSumsAVX512F32, channelGradientSumsAVX512F64}},
	channelGateLoop:         {AVX2: {channelGateAVX2F32, channelGateAVX2F64}, AVX512: {channelGateAVX512F32, channelGateAVX512F64}},
	channelGradientLoop:     {AVX2: {channelGradientAVX2F32, channelGradientAVX2F64}, AVX512: {channelGradientAVX512F32, channelGradientAVX512F64}},
}

// run calls the assembly of a loop for n channels and reports whether there is one.
func (a *channelArgs) run(k channelLoop, l Level, n, size int) bool {
	if l == Go {
		return false
	}
	lanes := l.bytes() / size
	a.vectors, a.tail = n/lanes, n%lanes
	if a.tail > 0 {
		a.mask = l.mask(a.tail, size)
	} else {
		a.mask = l.mask(lanes, size)
	}
	channelLoops[k].call(l, size, a)
	return true
}
