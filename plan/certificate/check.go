package certificate

import (
	"context"
	"fmt"
	"slices"

	"dahl/parallel"
	"dahl/plan/space"
)

// Check proves a certificate again, for the first graph of each choice's program: every leaf is proved, and
// every plan of every choice of the space that can run is a plan of a leaf. It is one if the leaf's model
// relaxes that of the choice (see [Model.Relaxes]) and the plan uses the devices that the leaf says. Plans
// that do not use one of them are plans without this device, and need another leaf. The further choices of the
// certificate are covered beside those of the space. Proofs are checked on all processors at one time.
func (c *Certificate) Check(s *space.Space) error {
	if !sameSet(c.Devices, s.Devices) || !sameSet(c.Tiles, s.Tiles) {
		return fmt.Errorf("it covers the devices %q with the tiles %q, and not %q with %q", c.Devices, c.Tiles, s.Devices, s.Tiles)
	}
	parts, err := Parts(c.Objective)
	if err != nil {
		return err
	}
	k := &checking{Certificate: c, space: s, parts: parts, made: Models{Steady: c.Steady}, models: make([]*Model, len(c.Leaves))}
	if err := parallel.Do(context.Background(), len(c.Leaves), k.checkLeaf); err != nil {
		return err
	}
	choices := slices.Concat(s.Choices(), c.Further)
	return parallel.Do(context.Background(), len(choices), func(i int) error { return k.checkCovered(choices[i]) })
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
	parts  []Objective
	made   Models
	models []*Model // by leaf: of the last of the parts, which knows all that the others know
}

// checkLeaf proves the claims of a leaf.
func (k *checking) checkLeaf(i int) error {
	l := &k.Leaves[i]
	if err := l.wellFormed(k.parts); err != nil {
		return err
	}
	m, err := l.Model(k.space, k.parts[len(k.parts)-1], &k.made)
	if err == nil {
		err = l.check(m.Within(k.Deadline))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", l.Choice, err)
	}
	m.number() // forgets what rows of the proofs looked up, which no comparison needs
	k.models[i] = m
	return nil
}

// Model is that of the plans of a leaf's sets of devices, of a space. [Leaf.Given] is that of its own plans
// among them.
func (l *Leaf) Model(s *space.Space, o Objective, made *Models) (*Model, error) {
	var models []*Model
	for _, devices := range append([]string{l.Devices}, l.Joined...) {
		priced, err := s.Price(space.Choice{Devices: devices, Tiles: l.Tiles})
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

// Given is the model of those plans that use the devices that the leaf says.
func (l *Leaf) Given(m *Model) (*Model, error) {
	used, err := m.used(l.Used)
	if err != nil {
		return nil, err
	}
	return m.Given(used)
}

// check proves the claims of a leaf, with its model.
func (l *Leaf) check(m *Model) error {
	given, err := l.Given(m)
	if err != nil {
		return err
	}
	for i := range l.Claims {
		claim, of := &l.Claims[i], *given
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
	c := &cover{checking: k, graph: priced.Program.Graphs[0].Hash(), known: map[string]bool{}}
	m, err := k.made.Of(priced, c.graph, k.parts[len(k.parts)-1])
	if err != nil {
		return fmt.Errorf("%s: %w", choice, err)
	}
	for i := range k.Leaves {
		if k.Leaves[i].Choice == choice {
			c.order = slices.Insert(c.order, 0, i)
		} else {
			c.order = append(c.order, i)
		}
	}
	if !c.covered(m.Within(k.Deadline), make([]byte, len(m.Devices))) {
		return fmt.Errorf("%s: no leaf bounds all of these plans", choice)
	}
	return nil
}

// cover is the search for leaves of all plans of a choice.
type cover struct {
	*checking
	graph string
	order []int           // in which leaves are tried: those of the choice first
	known map[string]bool // by devices that are left out
}

// covered reports whether leaves bound all plans of a model, from which some devices are left out.
func (c *cover) covered(m *Model, without []byte) bool {
	key := string(without)
	if known, ok := c.known[key]; ok {
		return known
	}
	c.known[key] = false
	for _, i := range c.order {
		if l := &c.Leaves[i]; l.Graph == c.graph && c.models[i].Relaxes(m) && c.coveredBut(m, l, without) {
			c.known[key] = true
			break
		}
	}
	return c.known[key]
}

// coveredBut reports whether leaves bound all plans of a model that do not use the devices that a leaf says.
func (c *cover) coveredBut(m *Model, l *Leaf, without []byte) bool {
	for _, name := range l.Used {
		d := slices.IndexFunc(m.Devices, func(d Device) bool { return d.Name == name })
		if d < 0 {
			return false // no plan uses it
		}
		rest, can := m.without(d)
		if !can {
			continue // all plans use it
		}
		less := slices.Clone(without)
		less[d] = 1
		if slices.Equal(less, without) || !c.covered(rest, less) {
			return false
		}
	}
	return true
}

// without is the model of the plans in which a device runs nothing; false: there are none.
func (m *Model) without(device int) (*Model, bool) {
	rest := *m
	rest.Tasks = make([]Task, len(m.Tasks))
	for t := range m.Tasks {
		rest.Tasks[t].Options = slices.DeleteFunc(slices.Clone(m.Tasks[t].Options), func(o Option) bool { return o.Device == device })
		if len(rest.Tasks[t].Options) == 0 {
			return nil, false
		}
	}
	return &rest, true
}
