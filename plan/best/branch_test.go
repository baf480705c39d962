package best

import (
	"math/rand/v2"
	"testing"

	"dahl/must"
	"dahl/plan/certificate"
	"dahl/plan/problem"
	"dahl/plan/relax"
	"dahl/plan/space"
	"dahl/plan/tiling"
)

// leafOf proves a bound of an objective by branching.
func leafOf(t *testing.T, in *instance, o problem.Objective, steady bool, value float64, nodes int) *certificate.Leaf {
	t.Helper()
	leaf := &certificate.Leaf{Graph: in.priced.Program.Graphs[0].Hash()}
	parts := certificate.Parts(o)
	for _, part := range parts {
		m := must.Get(certificate.NewModel(in.priced, part, steady))(t)
		known := value
		if part != o {
			known = 10 * in.least[part]
		}
		if part == problem.EDP {
			m.LeastSpan = leaf.Claims[0].Bound
		}
		found := must.Get(relax.Branch(t.Context(), m, known, nodes))(t)
		must.Do(t, leaf.Add(m, found.Proofs...))
	}
	return leaf
}

func last(l *certificate.Leaf) float64 { return l.Claims[len(l.Claims)-1].Bound }

// No relaxation bounds a graph above the least value of its plans, which branch and bound knows, and most come near. Parts prove
// no less than one part. Of energy times time they prove no less than the product of both bounds, and much more on the whole.
// What a certificate claims is what its check proves again after it was written and read.
func TestBoundsOfKnownOptima(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 9))
	var near, raised, product, parts int
	for n := 0; n < 60; {
		in, ok := randomInstance(t, r)
		if !ok {
			continue
		}
		n++
		bounds := map[problem.Objective]float64{}
		for _, o := range []problem.Objective{problem.Time, problem.Energy, problem.EDP} {
			least := in.least[o]
			one, many := leafOf(t, &in, o, false, least*1.5, 1), leafOf(t, &in, o, false, least*1.5, 60)
			bounds[o] = last(many)
			parts += len(many.Claims[0].Proofs)
			leaves := []*certificate.Leaf{one, many}
			if o != problem.EDP {
				m := must.Get(certificate.NewModel(in.priced, o, false))(t)
				whole := &certificate.Leaf{Graph: one.Graph}
				must.Do(t, whole.Add(m, must.Get(relax.Bound(t.Context(), m, least*1.5))(t)))
				leaves = append(leaves, whole)
				if last(whole) > 0.8*least {
					near++
				}
			}
			for _, l := range leaves {
				if last(l) > least*(1+tolerance) {
					t.Errorf("graph %d, %s: the bound is %.12g, and a plan takes %.12g", n, o, last(l), least)
				}
				c := &certificate.Certificate{Objective: o, Devices: []string{""}, Tiles: []tiling.Tiling{{}}, Leaves: []certificate.Leaf{*l}}
				again := copyOf(t, c)
				if err := again.Check(space.Of(in.priced, c.Devices)); err != nil || again.Bound() != c.Bound() {
					t.Errorf("graph %d, %s: written and read again: %v", n, o, err)
				}
			}
			if last(many) < last(one)*(1-tolerance) {
				t.Errorf("graph %d, %s: %.12g in parts, %.12g in one", n, o, last(many), last(one))
			}
			if last(many) > last(one)*1.001 {
				raised++
			}
		}
		both := bounds[problem.Time] * bounds[problem.Energy]
		if bounds[problem.EDP] < both*0.999 {
			t.Errorf("graph %d: the product of both bounds is %.12g, and %.12g is proved of the product", n, both, bounds[problem.EDP])
		}
		if bounds[problem.EDP] > both*1.02 {
			product++
		}
	}
	if near < 80 {
		t.Errorf("%d of 120 bounds are above 0.8 of the least", near)
	}
	if raised < 40 || product < 10 {
		t.Errorf("parts raised %d bounds, and %d products are above those of two bounds (%d parts)", raised, product, parts)
	}
}
