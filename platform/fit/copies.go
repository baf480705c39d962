package fit

import (
	"math"
	"time"
)

// Copies is the time of a copy as a line through copies of several sizes:
//
//	t(bytes) = Latency + bytes/BytesPerSec
//
// It has the least sum of squared relative errors, so that a copy of four bytes counts as much as
// one of millions. Neither term is negative.
type Copies struct {
	Latency     time.Duration
	BytesPerSec float64 // +Inf: the times do not grow with the bytes
	// RelError is the error of a prediction: two of three sizes, each predicted from the others,
	// lie within it. MaxError is the greatest residual of all sizes.
	RelError, MaxError float64
}

// OfCopies fits the times of copies of some sizes. ok is false with fewer than two
// sizes or times that are not positive.
func OfCopies(bytes []int64, times []time.Duration) (f Copies, ok bool) {
	if len(bytes) != len(times) {
		panic("fit: copies and their times are not as many")
	}
	if len(bytes) < 2 {
		return Copies{}, false
	}
	rows := make([][3]float64, len(bytes))
	for i, t := range times {
		if t <= 0 {
			return Copies{}, false
		}
		rows[i] = [3]float64{1 / float64(t), 0, float64(bytes[i]) / float64(t)}
	}
	coef, ok := Minimise(rows)
	if !ok {
		return Copies{}, false
	}
	f = Copies{Latency: time.Duration(math.Ceil(coef[0])), BytesPerSec: math.Inf(1), RelError: leaveOneOut(rows)}
	if coef[2] > 0 {
		f.BytesPerSec = 1e9 / coef[2]
	}
	for _, r := range rows {
		f.MaxError = max(f.MaxError, math.Abs(residual(r, coef)))
	}
	return f, true
}
