package cpu

import (
	"dahl/kernels/calls"
	"dahl/kernels/simd"
)

// The vector variants of batch normalisation over channels-last images take a row of pixels at a time, or a sample where
// its rows follow each other, in the order of the reference.

// pixelRows is images whose rows of pixels are visited together.
type pixelRows[T calls.Float] struct {
	maps         [4]calls.Map4[T]
	used         int
	rows, pixels int // of a sample
	simd.Channels[T]
}

func pixelRowsOf[T calls.Float](images ...*calls.Arg) (p pixelRows[T]) {
	for i, a := range images {
		p.maps[i] = calls.Map4Of[T](a)
		p.Steps[i] = p.maps[i].Stride[2]
	}
	p.used = len(images)
	first := &p.maps[0]
	p.rows, p.pixels, p.Count = first.Extent[1], first.Extent[2], first.Extent[3]
	for i := range images {
		if p.maps[i].Stride[1] != p.pixels*p.Steps[i] {
			p.Pixels = p.pixels
			return p
		}
	}
	p.rows, p.pixels = 1, p.rows*p.pixels
	p.Pixels = p.pixels
	return p
}

// samples is the number of samples.
func (p *pixelRows[T]) samples() int { return p.maps[0].Extent[0] }

// at moves to a row of a sample.
func (p *pixelRows[T]) at(sample, row int) {
	for i := range p.used {
		m := &p.maps[i]
		p.Images[i] = m.Elems[m.At(sample, row, 0, 0):]
	}
}

// MomentsAt is moments.nhwc: for each sample and channel the sum of x in s, and the sum of squares around the mean in q.
// Operands are s and q of n×c and x of n×h×w×c. The workspace has an element for each channel.
func MomentsAt[T calls.Float](l simd.Level, call *calls.Call) {
	p := pixelRowsOf[T](&call.Args[2])
	mean, _ := calls.Scratch[T](call.Work, p.Count)
	for n := range p.samples() {
		s, q := Row[T](&call.Args[0], n), Row[T](&call.Args[1], n)
		clear(s)
		clear(q)
		p.Rows[0] = s
		for h := range p.rows {
			p.at(n, h)
			p.Sums(l)
		}
		for c := range mean {
			mean[c] = s[c] / T(p.rows*p.pixels)
		}
		p.Rows[0], p.Rows[1] = q, mean
		for h := range p.rows {
			p.at(n, h)
			p.Squares(l)
		}
	}
}

// ChannelWorkspace is an element for each channel of an operand whose channels are last.
func ChannelWorkspace(i int) func(*calls.Spec) int64 {
	return func(s *calls.Spec) int64 {
		shape := s.Operands[i].Shape
		return int64(shape[len(shape)-1]) * s.Type.SizeBytes()
	}
}

// normalise gives the rows that say how x is normalised.
func (p *pixelRows[T]) normalise(k *calls.Arg) {
	n := NormalisingOf[T](k)
	p.Rows[0], p.Rows[1], p.Rows[2] = n.Mean, n.Scale, n.shift
}

// BatchNormAt is batchnorm.nhwc: y = (x - k0)·k1 + k2, with an optional map r added. Operands are y, x, k of 4×c, r. Parameter
// 0 asks for the positive part.
func BatchNormAt[T calls.Float](l simd.Level, call *calls.Call) {
	var p pixelRows[T]
	if len(call.Args) > 3 {
		p = pixelRowsOf[T](&call.Args[0], &call.Args[1], &call.Args[3])
	} else {
		p = pixelRowsOf[T](&call.Args[0], &call.Args[1])
	}
	p.Add, p.ReLU = len(call.Args) > 3, call.Params[0] == 1
	p.normalise(&call.Args[2])
	for n := range p.samples() {
		for h := range p.rows {
			p.at(n, h)
			p.Normalise(l)
		}
	}
}

// BatchNormSumsAt is batchnorm.sums.nhwc: the sums of dy and of dy·(x - k0) for each sample and channel, in s and q. Operands
// are s and q of n×c, dy, x, k. With parameter 0 set, pixels count only where the normalised x is above 0.
func BatchNormSumsAt[T calls.Float](l simd.Level, call *calls.Call) {
	p := pixelRowsOf[T](&call.Args[2], &call.Args[3])
	p.ReLU = call.Params[0] == 1
	p.normalise(&call.Args[4])
	for n := range p.samples() {
		p.Rows[3], p.Rows[4] = Row[T](&call.Args[0], n), Row[T](&call.Args[1], n)
		clear(p.Rows[3])
		clear(p.Rows[4])
		for h := range p.rows {
			p.at(n, h)
			p.GradientSums(l)
		}
	}
}

// BatchNormGateAt is batchnorm.gate.nhwc: it adds the optional r to dy, clears dy where y is not above 0, and sums dy and dy·(x
// - k0) for each sample and channel. Operands are s and q of n×c, dy, y, x, k, r.
func BatchNormGateAt[T calls.Float](l simd.Level, call *calls.Call) {
	var p pixelRows[T]
	if len(call.Args) > 6 {
		p = pixelRowsOf[T](&call.Args[2], &call.Args[3], &call.Args[4], &call.Args[6])
	} else {
		p = pixelRowsOf[T](&call.Args[2], &call.Args[3], &call.Args[4])
	}
	p.Add = len(call.Args) > 6
	p.Rows[0] = Row[T](&call.Args[5], 0)
	for n := range p.samples() {
		p.Rows[1], p.Rows[2] = Row[T](&call.Args[0], n), Row[T](&call.Args[1], n)
		clear(p.Rows[1])
		clear(p.Rows[2])
		for h := range p.rows {
			p.at(n, h)
			p.Gate(l)
		}
	}
}

// BatchNormDxAt is batchnorm.dx.nhwc: dx = kd0·dy + kd1·(x - k0) + kd2. Operands are dx, dy, x, k of 4×c, kd of 3×c. With
// parameter 0 set, dy counts only where the normalised x is above 0.
func BatchNormDxAt[T calls.Float](l simd.Level, call *calls.Call) {
	p := pixelRowsOf[T](&call.Args[0], &call.Args[1], &call.Args[2])
	p.ReLU = call.Params[0] == 1
	p.normalise(&call.Args[3])
	for i := range 3 {
		p.Rows[3+i] = Row[T](&call.Args[4], i)
	}
	for n := range p.samples() {
		for h := range p.rows {
			p.at(n, h)
			p.Gradient(l)
		}
	}
}
