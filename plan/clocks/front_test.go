package clocks

import (
	"math"
	"math/rand/v2"
	"testing"

	"dahl/must"
)

// Between the corners of the front the least joules lie on lines, as the linear program says at any deadline. No clocks are below
// the lines.
func TestFront(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 32))
	for k := range 100 {
		g, _ := randomGraph(r)
		c := must.Get(New(g))(t)
		corners := must.Get(c.program.curve(t.Context(), float64(c.fastest), math.Inf(1), nil))(t)
		on := func(period float64) (joules float64) {
			if joules = math.Inf(1); len(corners) == 1 {
				joules = corners[0].joules
			}
			for i, b := range corners[1:] {
				if a := corners[i]; a.period <= period && period <= b.period && b.period > a.period {
					joules = min(joules, a.joules+(b.joules-a.joules)*(period-a.period)/(b.period-a.period))
				}
			}
			return joules
		}
		first, last := corners[0], corners[len(corners)-1]
		for range 10 {
			period := first.period + r.Float64()*(last.period-first.period)
			if is := must.Get(c.program.solve(t.Context(), period))(t); math.Abs(is.joules-on(is.period)) > 1e-5*c.program.joules {
				t.Errorf("graph %d: %g J at %g ns, on the line %g", k, is.joules, period, on(is.period))
			}
		}
		before := math.Inf(1)
		for _, is := range must.Get(c.Front(t.Context(), 5, 1000))(t) {
			if period := float64(is.Period); is.Joules >= before || period < last.period && is.Joules < on(math.Max(first.period, period))-1e-5*c.program.joules || is.Joules < last.joules-1e-5*c.program.joules {
				t.Errorf("graph %d: %v and %g J", k, is.Period, is.Joules)
			}
			before = is.Joules
		}
	}
}
