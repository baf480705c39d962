package relax

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"dahl/must"
	"dahl/plan/certificate"
	"dahl/plan/problem"
)

// More parts never prove less, they leave out no plan, and the same parts are found again.
func TestBranchRaisesBounds(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 4))
	raised := 0
	for n := range 12 {
		m := [](func(*testing.T, *rand.Rand, problem.Objective) *certificate.Model){layered, updated}[n/2%2](t, r, []problem.Objective{problem.Time, problem.Energy}[n%2])
		last := 0.0
		for _, nodes := range []int{1, 9, 31} {
			found := must.Get(Branch(t.Context(), m, 1e5, nodes))(t)
			proofs := found.Proofs
			if len(proofs) > (nodes+1)/2 {
				t.Errorf("graph %d: %d proofs of %d nodes", n, len(proofs), nodes)
			}
			var leaf certificate.Leaf
			must.Do(t, leaf.Add(m, proofs...))
			bound := leaf.Claims[0].Bound
			if bound < last*(1-1e-9) {
				t.Errorf("graph %d: %g with %d nodes, %g with fewer", n, bound, nodes, last)
			}
			if last > 0 && bound > last*1.001 {
				raised++
			}
			last = bound
		}
		first, errA := Branch(t.Context(), m, 1e5, 15)
		second, errB := Branch(t.Context(), m, 1e5, 15)
		if errA != nil || errB != nil || !reflect.DeepEqual(first, second) {
			t.Errorf("graph %d: two searches differ (%v, %v)", n, errA, errB)
		}
		if found, err := Branch(t.Context(), m, last/2, 31); err != nil || len(found.Proofs) > 3 {
			t.Errorf("graph %d: %v (%v) where half of the bound is enough", n, found, err)
		}
	}
	if raised < 5 {
		t.Errorf("%d bounds were raised", raised)
	}
}
