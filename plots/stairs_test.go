package plots

import (
	"math"
	"slices"
	"testing"
	"time"

	"dahl/energy"
)

// 10 W from 0 to 2 s and 30 W to 5 s: 20 J + 30 J by 3 s, 60 J more by 5 s.
func TestJoulesBetween(t *testing.T) {
	samples := []energy.PowerSample{{At: 0, Watts: 10}, {At: 2 * time.Second, Watts: 30}}
	got := joulesBetween(samples, []time.Duration{0, 3 * time.Second, 5 * time.Second})
	if want := []float64{50, 60}; !slices.Equal(got, want) {
		t.Errorf("joules %v, want %v", got, want)
	}
}

// Columns keep the energy: 5,000 steps that alternate between 1 W and 3 W draw
// 2 W on average, 10 J in 5 s, however they are grouped.
func TestStackOfManyStepsKeepsTheEnergy(t *testing.T) {
	trace := energy.PowerTrace{Name: "cpu"}
	for i := range 5000 {
		trace.Samples = append(trace.Samples, energy.PowerSample{At: time.Duration(i) * time.Millisecond, Watts: float64(1 + 2*(i%2))})
	}
	s := newStack([]energy.PowerTrace{trace, trace}, 5*time.Second, maxStairs)
	if len(s.times) != maxStairs+1 {
		t.Errorf("%d moments, want the grid of %d columns", len(s.times), maxStairs)
	}
	// 2400 additions of about 4 mJ, each rounded to 2^-53 relative of at most 20 J.
	if bound := 2400 * 20 * 0x1p-52; math.Abs(s.total()-20) > bound || math.Abs(s.joules(0)-10) > bound {
		t.Errorf("%g J and %g J, want 10 J and 20 J", s.joules(0), s.total())
	}
}

// A peak of one nanosecond in a second must show.
func TestEnvelopeKeepsPeaks(t *testing.T) {
	var at []time.Duration
	var bytes []int64
	for i := range 5000 {
		at, bytes = append(at, time.Duration(i)*200*us), append(bytes, int64(i%7))
	}
	at, bytes = append(at, 999_900*us, 999_900*us+1), append(bytes, 1000, 3)
	times, values := envelope(at, bytes, time.Second, maxStairs)
	if len(values) != maxStairs || len(times) != maxStairs+1 || slices.Max(values) != 1000 {
		t.Errorf("%d values with peak %g, want %d with peak 1000", len(values), slices.Max(values), maxStairs)
	}
}

// Of several events at one moment the last holds.
func TestEnvelopeOfFewEvents(t *testing.T) {
	times, values := envelope([]time.Duration{10, 10, 30}, []int64{5, 7, 2}, 40, maxStairs)
	if !slices.Equal(times, []time.Duration{0, 10, 30, 40}) || !slices.Equal(values, []float64{0, 7, 2}) {
		t.Errorf("times %v values %v, want 0, 7 from 10, 2 from 30", times, values)
	}
}

// Ten consumers of 1 W beside one of 990 W draw 0.1 % each: they share a layer.
// Nine alike exceed the layers: eight keep one and the ninth is the other.
func TestSmallConsumersShareALayer(t *testing.T) {
	constant := func(name string, watts float64) energy.PowerTrace {
		return energy.PowerTrace{Name: name, Samples: []energy.PowerSample{{At: 0, Watts: watts}}}
	}
	traces := []energy.PowerTrace{constant("big", 990), constant("off", 0)}
	var alike []energy.PowerTrace
	for range 10 {
		traces = append(traces, constant("small", 1))
	}
	for range 9 {
		alike = append(alike, constant("same", 4))
	}
	for _, c := range []struct {
		traces []energy.PowerTrace
		names  []string
		joules float64 // in 2 s
	}{
		{traces, []string{"big", "10 others"}, 2000},
		{alike, []string{"same", "same", "same", "same", "same", "same", "same", "same", "1 other"}, 72},
	} {
		s := newStack(c.traces, 2*time.Second, maxStairs)
		if !slices.Equal(s.names, c.names) || s.total() != c.joules {
			t.Errorf("layers %q of %g J, want %q of %g J", s.names, s.total(), c.names, c.joules)
		}
	}
}
