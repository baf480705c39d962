package simd

import (
	"math"
	"unsafe"
)

// Loops over a row of scores of an attention, and over the features of a row that is normalised. They compute in the elements' type, in
// vectors whose elements are added up at the end, each in its order. Exponentials in float32 err by at most 3 units of 2⁻²⁴ in addition to what the
// argument has lost: ln 2 is split so that n times its first part is exact, and the polynomial of degree 7 leaves out 5e-9. Below
// e⁻⁸⁷ they are e⁻⁸⁷.

// rowConstants are float32 numbers, each as often as a vector holds. gen/rows.go knows their order.
var rowConstants = func() (all [13][16]float32) {
	for i, v := range [...]float32{-87, 1.44269504, 0x1.8p23, 0.693359375, -2.12194440e-4, 1. / 5040, 1. / 720, 1. / 120, 1. / 24, 1. / 6, 0.5, 1, 1} {
		for j := range all[i] {
			all[i][j] = v
		}
	}
	return all
}()

// rowBias is the flag of calls with a bias, known to gen/rows.go.
const rowBias = 1

// rowCall is a call of a loop over rows, with room for its results.
type rowCall[T Float] struct {
	runArgs
	totals [2 * 16]T
}

// run runs the loop at a level, and returns its totals. It reports whether the level has assembly.
func (r *rowCall[T]) run(loop *forms[runArgs], l Level, n int, scalars ...T) bool {
	if l == Go {
		return false
	}
	for i, v := range scalars {
		r.scalars[i] = bits(v)
	}
	r.scalars[8] = uint64(uintptr(unsafe.Pointer(&rowConstants)))
	if size(r.totals[:]) == 8 {
		r.scalars[8] = uint64(uintptr(unsafe.Pointer(&constants[0])))
	}
	return r.runArgs.run(loop, l, n, size(r.totals[:]))
}

// total adds up the elements of a total.
func (r *rowCall[T]) total(l Level, i int) (sum T) {
	lanes := l.bytes() / size(r.totals[:])
	for _, v := range r.totals[i*lanes:][:lanes] {
		sum += v
	}
	return sum
}

// RowMaximum is the greatest element of a row that is not empty.
func RowMaximum[T Float](l Level, x []T) T {
	var r rowCall[T]
	r.operands = [4]unsafe.Pointer{0: pointer(x), 3: pointer(r.totals[:])}
	most := x[0]
	if r.run(&rowMaximum, l, len(x), most) {
		x = r.totals[:l.bytes()/size(x)]
	}
	for _, v := range x {
		most = max(most, v)
	}
	return most
}

// RowExponentials computes y = exp(scale·x - less), and returns the sum. y is at least as long as x.
func RowExponentials[T Float](l Level, y, x []T, scale, less T) (sum T) {
	y = y[:len(x)]
	var r rowCall[T]
	r.operands = [4]unsafe.Pointer{0: pointer(y), 1: pointer(x), 3: pointer(r.totals[:])}
	if r.run(&rowExponentials, l, len(x), scale, less) {
		return r.total(l, 0)
	}
	for i, v := range x {
		y[i] = T(math.Exp(float64(T(scale*v) - less)))
		sum += y[i]
	}
	return sum
}

// RowGradient replaces a by p = exp(scale·a - less) and d by p·(d - along)·scale. d is at least as long as a.
func RowGradient[T Float](l Level, a, d []T, scale, less, along T) {
	d = d[:len(a)]
	var r rowCall[T]
	r.operands = [4]unsafe.Pointer{pointer(a), pointer(d)}
	if r.run(&rowGradient, l, len(a), scale, less, along) {
		return
	}
	for i, v := range a {
		a[i] = T(math.Exp(float64(T(scale*v) - less)))
		d[i] = (d[i] - along) * a[i] * scale
	}
}

// RowNorm is how a row of features is normalised: n = (x - Mean)·Inverse.
type RowNorm[T Float] struct{ Mean, Inverse T }

// RowNormOf is how a row is normalised, with its mean or with 0.
func RowNormOf[T Float](l Level, x []T, centered bool, eps float64) (n RowNorm[T]) {
	var r rowCall[T]
	r.operands = [4]unsafe.Pointer{0: pointer(x), 3: pointer(r.totals[:])}
	var squares T
	if centered {
		if r.run(&rowSums, l, len(x)) {
			n.Mean = r.total(l, 0)
		} else {
			for _, v := range x {
				n.Mean += v
			}
		}
		n.Mean /= T(len(x))
	}
	if r.run(&rowSquares, l, len(x), n.Mean) {
		squares = r.total(l, 0)
	} else {
		for _, v := range x {
			squares += T((v - n.Mean) * (v - n.Mean))
		}
	}
	n.Inverse = T(1 / math.Sqrt(float64(squares)/float64(len(x))+eps))
	return n
}

// with is a call with the flag of a bias.
func (r *rowCall[T]) with(bias []T) *rowCall[T] {
	if bias != nil {
		r.flags = rowBias
	}
	return r
}

// Normalise computes y = w·n + b. b may be nil.
func (n RowNorm[T]) Normalise(l Level, y, x, w, b []T) {
	y, w = y[:len(x)], w[:len(x)]
	var r rowCall[T]
	r.operands = [4]unsafe.Pointer{pointer(y), pointer(x), pointer(w), pointer(b)}
	if r.with(b).run(&rowNormalise, l, len(x), n.Mean, n.Inverse) {
		return
	}
	for i, v := range x {
		y[i] = T((v-n.Mean)*n.Inverse) * w[i]
		if b != nil {
			y[i] += b[i]
		}
	}
}

// Gradient computes dx = Inverse·(g - mean(g) - n·mean(g·n)), g = w·dy, without mean(g) where a row has the mean 0.
func (n RowNorm[T]) Gradient(l Level, dx, x, dy, w []T, centered bool) {
	dx, dy, w = dx[:len(x)], dy[:len(x)], w[:len(x)]
	var r rowCall[T]
	r.operands = [4]unsafe.Pointer{pointer(x), pointer(dy), pointer(w), pointer(r.totals[:])}
	var sum, products T
	if r.run(&rowNormProducts, l, len(x), n.Mean, n.Inverse) {
		sum, products = r.total(l, 0), r.total(l, 1)
	} else {
		for i, v := range x {
			g := w[i] * dy[i]
			sum += g
			products += T(g * ((v - n.Mean) * n.Inverse))
		}
	}
	if !centered {
		sum = 0
	}
	sum, products = sum/T(len(x)), products/T(len(x))
	r.operands = [4]unsafe.Pointer{pointer(dx), pointer(x), pointer(dy), pointer(w)}
	if r.run(&rowNormGradient, l, len(x), n.Mean, n.Inverse, sum, products) {
		return
	}
	for i, v := range x {
		dx[i] = n.Inverse * (T(w[i]*dy[i]) - sum - T((v-n.Mean)*n.Inverse*products))
	}
}

// AddWeights adds dy·n to dw and, where that is not nil, dy to db.
func (n RowNorm[T]) AddWeights(l Level, dw, x, dy, db []T) {
	dw, dy = dw[:len(x)], dy[:len(x)]
	var r rowCall[T]
	r.operands = [4]unsafe.Pointer{pointer(dw), pointer(x), pointer(dy), pointer(db)}
	if r.with(db).run(&rowNormWeights, l, len(x), n.Mean, n.Inverse) {
		return
	}
	for i, v := range x {
		dw[i] += T(dy[i] * ((v - n.Mean) * n.Inverse))
		if db != nil {
			db[i] += dy[i]
		}
	}
}
