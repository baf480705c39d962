package cpu

import (
	"dahl/kernels/calls"
	"dahl/kernels/simd"
)

// norm normalises data on their way into a convolution.
type norm[T calls.Float] struct {
	normalising[T]
	room []T // nil means that data are taken as they are
}

func normOf[T calls.Float](call *calls.Call) (n norm[T]) {
	if call.Room != nil {
		n.normalising = NormalisingOf[T](&call.Norm)
		n.room, _ = calls.Scratch[T](call.Room, len(call.Room)/calls.SizeOf[T]())
	}
	return n
}

// channels is how channels from one on are normalised.
func (n norm[T]) channels(first int) norm[T] {
	if n.room != nil {
		n.Mean, n.Scale, n.shift = n.Mean[first:], n.Scale[first:], n.shift[first:]
	}
	return n
}

// samples is how many samples of a map find room.
func (n *norm[T]) samples(x *calls.Map4[T]) int {
	return len(n.room) / (x.Extent[1] * x.Extent[2] * x.Extent[3])
}

// image normalises all of a map.
func (n *norm[T]) image(l simd.Level, x calls.Map4[T]) calls.Map4[T] {
	to := calls.Packed4(n.room[:x.Extent[0]*x.Extent[1]*x.Extent[2]*x.Extent[3]], x.Extent)
	for i := range x.Extent[0] {
		for h := range x.Extent[1] {
			n.pixels(l, to.Elems[to.At(i, h, 0, 0):], x.Elems[x.At(i, h, 0, 0):], x.Stride[2], x.Extent[2], x.Extent[3])
		}
	}
	return to
}

// pixels normalises some pixels at equal distances. The results follow each other.
func (n *norm[T]) pixels(l simd.Level, to, from []T, step, pixels, channels int) {
	c := simd.Channels[T]{Pixels: pixels, Count: channels, ReLU: true}
	c.Images[0], c.Images[1], c.Steps[0], c.Steps[1] = to, from, channels, step
	c.Rows[0], c.Rows[1], c.Rows[2] = n.Mean, n.Scale, n.shift
	c.Normalise(l)
}

// normalising is the rows of operand k.
type normalising[T calls.Float] struct{ Mean, Scale, shift, Inverse []T }

// NormalisingOf is operand k of batch normalisation, 4×c, as one slice for each row: the mean, the scale, the shift and the
// inverse of the standard deviation of each channel.
func NormalisingOf[T calls.Float](k *calls.Arg) normalising[T] {
	return normalising[T]{Row[T](k, 0), Row[T](k, 1), Row[T](k, 2), Row[T](k, 3)}
}

// Row is a row of a matrix.
func Row[T calls.Float](a *calls.Arg, i int) []T {
	return calls.Data[T](a)[i*a.Stride[0]:][:a.Shape[1]]
}

// Of is the normalised value of x in a channel.
func (k *normalising[T]) Of(x T, c int) T { return T((x-k.Mean[c])*k.Scale[c]) + k.shift[c] }

// Put fills in a channel, from what is as accurate as float64.
func (k *normalising[T]) Put(c int, mean, inverse float64, weight, bias T) {
	k.Mean[c], k.Scale[c], k.shift[c], k.Inverse[c] = T(mean), T(inverse*float64(weight)), bias, T(inverse)
}
