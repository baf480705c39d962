package kerneltest

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/kernels"
)

// TestRandomFollowsDims: an operation that this package does not know gets shapes in which
// equal names are equal extents, different ones mostly differ, and numbers are themselves.
func TestRandomFollowsDims(t *testing.T) {
	read := []dag.Mode{dag.Read}
	k := &kernels.Kernel{Op: "new", Operands: []kernels.Operand{
		{Name: "y", Modes: read, Dims: "a b ..."}, {Name: "x", Modes: read, Dims: "b a 3"}, {Name: "z", Modes: read, Dims: "..."}}}
	rng := rand.New(rand.NewPCG(1, 2))
	ranks, equal, wide := map[int]bool{}, 0, 0
	for range 200 {
		c := Random(k, rng, dag.Float32)
		y, x, z := c.Spec.Operands[0].Shape, c.Spec.Operands[1].Shape, c.Spec.Operands[2].Shape
		if x[0] != y[1] || x[1] != y[0] || x[2] != 3 || !slices.Equal(y[2:], z) {
			t.Fatalf("shapes %v, %v and %v", y, x, z)
		}
		ranks[len(z)] = true
		if x[0] == x[1] {
			equal++
		}
		if x[1] > wider {
			wide++
		}
	}
	// Two extents are both 1 in one of 36 cases, 6 of 200, and never the same prime. No row is
	// longer than 19: the last names are "..." and 3.
	if len(ranks) != 4 || equal > 20 || wide > 0 {
		t.Errorf("%d numbers of further dimensions, %d cases with equal extents, %d with long columns", len(ranks), equal, wide)
	}
}

// TestRandomAsksForValues: a parameter of a new name needs values.
func TestRandomAsksForValues(t *testing.T) {
	defer func() {
		if text, _ := recover().(string); !strings.Contains(text, "new has a parameter angle") {
			t.Errorf("panics with %q", text)
		}
	}()
	k := &kernels.Kernel{Op: "new", Params: []string{"angle"}, Operands: []kernels.Operand{{Name: "x", Modes: []dag.Mode{dag.Read}, Dims: "..."}}}
	Random(k, rand.New(rand.NewPCG(1, 2)), dag.Float32)
}
