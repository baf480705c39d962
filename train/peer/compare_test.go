package peer

import (
	"math"
	"testing"

	"dahl/must"
)

func TestLossError(t *testing.T) {
	want := []float64{2, 1}
	// 2.0002 is off by 1e-4 of 2, 1.0005 by 5e-4 of 1: the worse counts.
	got, err := LossError("twin", want, []float64{2.0002, 1.0005}, []float64{1e-3, 1e-3})
	if err != nil || math.Abs(got-5e-4) > 1e-9 {
		t.Errorf("loss error %v, %v; want 5e-4", got, err)
	}
	for _, other := range [][]float64{{2.01, 1}, {math.NaN(), 1}} {
		if _, err := LossError("twin", want, other, []float64{1e-3, 1e-3}); err == nil {
			t.Errorf("losses %v and %v pass as the same network", want, other)
		}
	}
}

// TestSameLosses: losses of 2 and 1 within 1e-3 are the same whatever rounding does; others are within wider bounds.
func TestSameLosses(t *testing.T) {
	wide := func() ([]float64, error) { return []float64{1e-3, 2e-2}, nil }
	asked := func() ([]float64, error) { t.Error("bounds are asked for"); return nil, nil }
	if off, err := SameLosses("twin", []float64{2, 1}, []float64{2, 1.0005}, 1e-3, asked); err != nil || math.Abs(off-5e-4) > 1e-9 {
		t.Errorf("%v, %v; want 5e-4", off, err)
	}
	if off, err := SameLosses("twin", []float64{2, 1}, []float64{2, 1.01}, 1e-3, wide); err != nil || math.Abs(off-1e-2) > 1e-9 {
		t.Errorf("%v, %v; want 1e-2", off, err)
	}
	if _, err := SameLosses("twin", []float64{2, 1}, []float64{2.02, 1}, 1e-3, wide); err == nil {
		t.Error("a first loss off by 1e-2 passes where only the second may be")
	}
}

// TestLossBounds gives two losses whose second is 1 % off what dahl has in float64: from there on the bound is
// ten times that, and before it, where float32 and float64 agree to 1e-5, the one of all networks.
func TestLossBounds(t *testing.T) {
	w, _ := smallWork(t)
	order := orderOf(w, w.Data.Train.Len(), 0)
	first := must.Get(oursOf(t.Context(), w, order))(t)
	first.losses[1] *= 1.01
	got := must.Get(LossBounds(t.Context(), w, order, first.losses))(t)
	for i, bound := range got {
		want := 1e-3
		if i >= 1 {
			want = 1e-1
		}
		if math.Abs(bound-want) > 1e-4 {
			t.Errorf("step %d: a bound of %v, want %v", i+1, bound, want)
		}
	}
}
