package certificate

import (
	"fmt"
	"runtime"
	"slices"
	"sync"

	"dahl/plan/space"
	"dahl/schedule"
)

// Check proves a certificate again, for the first graph of each choice's program: every leaf is proved, and
// every choice of the space that can run has a leaf, or is one whose plans those of a leaf with the same lowering and
// graph relax (see [Model.Relaxes]). Proofs are checked on all processors at one time.
func (c *Certificate) Check(s *space.Space) error {
	if !sameNames(c.Devices, s.Devices) || !sameNames(c.Tiles, s.Tiles) {
		return fmt.Errorf("it covers the devices %q with the tiles %q, and not %q with %q", c.Devices, c.Tiles, s.Devices, s.Tiles)
	}
	parts, err := Parts(c.Objective)
	if err != nil {
		return err
	}
	k := &checking{Certificate: c, space: s, parts: parts, proved: make([]*Model, len(c.Leaves)), own: map[space.Choice]bool{}}
	if err := inParallel(len(c.Leaves), k.checkLeaf); err != nil {
		return err
	}
	for i := range c.Leaves {
		k.own[c.Leaves[i].Choice] = true
	}
	choices := slices.DeleteFunc(s.Choices(), func(choice space.Choice) bool { return k.own[choice] })
	return inParallel(len(choices), func(i int) error { return k.checkCovered(choices[i]) })
}

func sameNames(a, b []string) bool {
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	return slices.Equal(a, b)
}

// checking is the check of one certificate.
type checking struct {
	*Certificate
	space  *space.Space
	parts  []Objective
	proved []*Model // by leaf
	own    map[space.Choice]bool
}

// checkLeaf proves the claims of a leaf.
func (k *checking) checkLeaf(i int) error {
	l := &k.Leaves[i]
	priced, err := k.space.Price(l.Choice)
	if err != nil {
		return fmt.Errorf("%s: %w", l.Choice, err)
	}
	m, err := k.model(priced)
	if err != nil {
		return fmt.Errorf("%s: %w", l.Choice, err)
	}
	if hash := priced.Program.Graphs[0].Hash(); l.Graph != hash {
		return fmt.Errorf("%s: its leaf is of a graph with hash %.12s, and this one has %.12s", l.Choice, l.Graph, hash)
	}
	if err := l.wellFormed(k.parts); err != nil {
		return err
	}
	for _, claim := range l.Claims {
		m.Objective = claim.Objective
		bound, err := claim.Proof.Bound(m)
		if err != nil {
			return fmt.Errorf("%s: %w", l.Choice, err)
		}
		if !(claim.Bound <= bound) {
			return fmt.Errorf("%s: it claims that no plan takes less %s than %.12g, and proves %.12g", l.Choice, claim.Objective, claim.Bound, bound)
		}
	}
	m.Objective = k.parts[len(k.parts)-1]
	clear(m.reached) // rows of the proofs asked for it, and no comparison does
	k.proved[i] = m
	return nil
}

// model is that of a choice for the last part of the objective, which knows all that the others know.
func (k *checking) model(priced *schedule.Priced) (*Model, error) {
	return NewModel(priced, 0, k.parts[len(k.parts)-1], k.Steady)
}

// checkCovered verifies that a leaf bounds the plans of a choice that has none of its own.
func (k *checking) checkCovered(choice space.Choice) error {
	priced, err := k.space.Price(choice)
	if err != nil {
		return nil // it has no plans
	}
	hash := priced.Program.Graphs[0].Hash()
	m, err := k.model(priced)
	if err != nil {
		return fmt.Errorf("%s: %w", choice, err)
	}
	for i := range k.Leaves {
		if l := &k.Leaves[i]; l.Tiles == choice.Tiles && l.Graph == hash && k.proved[i].Relaxes(m) {
			return nil
		}
	}
	return fmt.Errorf("%s: no leaf bounds these plans", choice)
}

// inParallel calls do for 0 to n−1, on all processors at one time, and returns the error of the least of these.
func inParallel(n int, do func(i int) error) error {
	errs := make([]error, n)
	next := make(chan int)
	var wait sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for i := range next {
				errs[i] = do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wait.Wait()
	if i := slices.IndexFunc(errs, func(err error) bool { return err != nil }); i >= 0 {
		return errs[i]
	}
	return nil
}
