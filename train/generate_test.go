package train

import (
	"math"
	"testing"
)

// TestDraw: of outputs 0, log 2, log 5 and the same again, probabilities are 1/13, 2/13, 5/13 and 5/13; of the top two, which tie, each
// is a half. At a temperature of ½ outputs are doubled: 1/55, 4/55, 25/55 and 25/55.
func TestDraw(t *testing.T) {
	z := []float64{0, math.Log(2), math.Log(5), math.Log(5)}
	for _, c := range []struct {
		s    Sampling
		at   float64
		want int32
	}{
		{Sampling{Temperature: 1}, 0, 0}, {Sampling{Temperature: 1}, 0.99 / 13, 0}, {Sampling{Temperature: 1}, 1.01 / 13, 1}, {Sampling{Temperature: 1}, 3.01 / 13, 2},
		{Sampling{Temperature: 1}, 8.01 / 13, 3}, {Sampling{Temperature: 1}, 1 - 0x1p-53, 3},
		{Sampling{Temperature: 1, TopK: 1}, 0, 2}, {Sampling{Temperature: 1, TopK: 2}, 0.49, 2}, {Sampling{Temperature: 1, TopK: 2}, 0.51, 3}, {Sampling{Temperature: 1, TopK: 9}, 0, 0},
		{Sampling{Temperature: 0.5}, 0.99 / 55, 0}, {Sampling{Temperature: 0.5}, 4.99 / 55, 1}, {Sampling{Temperature: 0.5}, 5.01 / 55, 2}, {Sampling{}, 0.5, 2},
	} {
		if got := c.s.draw(z, c.at); got != c.want {
			t.Errorf("%+v at %v: token %d, want %d", c.s, c.at, got, c.want)
		}
	}
}
