package certificate

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"dahl/parallel"
	"dahl/plan/problem"
	"dahl/plan/space"
)

// Check proves a certificate again, for the first graph of each choice's program: every leaf is proved, and
// every plan of every choice of the space that can run is a plan of a leaf. It is one if the leaf's model relaxes the model of
// the choice (see [Model.Relaxes]). The certificate covers its further choices as well as the choices of the space. Proofs are
// checked on all processors at one time.
func (c *Certificate) Check(s *space.Space) error {
	if !sameSet(c.Devices, s.Devices) {
		return fmt.Errorf("it covers the devices %q, and not %q", c.Devices, s.Devices)
	}
	parts, err := c.parts()
	if err != nil {
		return err
	}
	k := &checking{Certificate: c, space: s, of: parts, made: Models{Steady: c.Steady}, models: make([]*Model, len(c.Leaves))}
	if err := parallel.Do(context.Background(), len(c.Leaves), k.checkLeaf); err != nil {
		return err
	}
	if err := c.checkLayers(s); err != nil || len(c.Leaves) == 0 && c.Layers != nil {
		return err
	}
	covered := *s
	covered.Tiles = c.Tiles
	choices := slices.Concat(covered.Choices(), c.Further)
	return parallel.Do(context.Background(), len(choices), func(i int) error { return k.checkCovered(choices[i]) })
}

// checkLayers proves the bound for all lowerings, if there is one.
func (c *Certificate) checkLayers(s *space.Space) error {
	switch {
	case c.Layers == nil:
		return nil
	case s.Shares == nil:
		return errors.New("it has a bound for all lowerings of layers, and the program has none")
	}
	step, p, err := s.Shares(context.Background())
	if err == nil {
		err = c.Layers.Check(step, p, problem.Aim{Objective: c.Objective, Steady: c.Steady, Deadline: c.Deadline})
	}
	if err != nil {
		return fmt.Errorf("bound for all lowerings: %w", err)
	}
	return nil
}

// sameSet reports whether two lists have the same elements.
func sameSet[T comparable](a, b []T) bool {
	count := map[T]int{}
	for _, x := range a {
		count[x]++
	}
	for _, x := range b {
		if count[x]--; count[x] == 0 {
			delete(count, x)
		}
	}
	return len(count) == 0
}

// checking is the check of one certificate.
type checking struct {
	*Certificate
	space  *space.Space
	of     []problem.Objective // the claims of a leaf
	made   Models
	models []*Model // by leaf: for the last objective, whose rows include the others'
}

// checkLeaf proves the claims of a leaf.
func (k *checking) checkLeaf(i int) error {
	l := &k.Leaves[i]
	if err := l.wellFormed(k.of); err != nil {
		return err
	}
	m, err := l.Model(k.space, k.of[len(k.of)-1], &k.made)
	if err == nil {
		err = l.check(m.Within(k.Deadline))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", l.Choice, err)
	}
	m.number() // forgets the sums of the proofs, since comparisons need none
	k.models[i] = m
	return nil
}

// Model returns the model of all plans of a leaf, whose sets of devices are in a space.
func (l *Leaf) Model(s *space.Space, o problem.Objective, made *Models) (*Model, error) {
	var models []*Model
	for _, devices := range append([]string{l.Devices}, l.Joined...) {
		priced, err := s.Price(space.Choice{Devices: devices, Tiles: l.Tiles, Strategy: l.Strategy})
		if err != nil {
			return nil, err
		}
		if hash := priced.Program.Graphs[0].Hash(); l.Graph != hash {
			return nil, fmt.Errorf("its leaf is of a graph with hash %.12s, and this one has %.12s", l.Graph, hash)
		}
		m, err := made.Of(priced, l.Graph, o)
		if err != nil {
			return nil, err
		}
		models = append(models, m)
	}
	return Join(models...)
}

// check proves the claims of a leaf, with its model.
func (l *Leaf) check(m *Model) error {
	for i := range l.Claims {
		claim, of := &l.Claims[i], *m
		of.Objective = claim.Objective
		bound, err := l.prove(&of, claim.Proofs, l.Claims[:i])
		if err != nil {
			return err
		}
		if !(claim.Bound <= bound) {
			return fmt.Errorf("it claims that no plan takes less %s than %.12g, and proves %.12g", claim.Objective, claim.Bound, bound)
		}
	}
	return nil
}

// checkCovered verifies that every plan of a choice is one of some leaf.
func (k *checking) checkCovered(choice space.Choice) error {
	priced, err := k.space.Price(choice)
	if err != nil {
		return nil // it has no plans
	}
	graph := priced.Program.Graphs[0].Hash()
	m, err := k.made.Of(priced, graph, k.of[len(k.of)-1])
	if err != nil {
		return fmt.Errorf("%s: %w", choice, err)
	}
	m = m.Within(k.Deadline)
	for _, own := range []bool{true, false} { // leaves of the choice first, which mostly suffice
		for i := range k.Leaves {
			if l := &k.Leaves[i]; (l.Choice == choice) == own && l.Graph == graph && k.models[i].Relaxes(m) {
				return nil
			}
		}
	}
	return fmt.Errorf("%s: no leaf bounds all of these plans", choice)
}
