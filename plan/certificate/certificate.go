package certificate

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"dahl/dag"
	"dahl/plan/problem"
	"dahl/plan/shares"
	"dahl/plan/space"
	"dahl/plan/tiling"
)

// Format names the form of a certificate on disk.
const Format = "dahl-certificate 6"

// Certificate is a lower bound of an objective over all plans of all choices of a space: sets of devices with
// lowerings. Each leaf proves a bound of the plans of one choice, and of those choices whose plans it relaxes.
type Certificate struct {
	Format    string            `json:"format"`
	Objective problem.Objective `json:"objective"`
	Steady    bool              `json:"steady"` // of a step among many; else of one that runs alone
	// Deadline is how long a step of the plans may take of which it is a bound; zero means no matter.
	Deadline time.Duration   `json:"deadline_ns,omitempty"`
	Devices  []string        `json:"devices"` // the sets that it covers
	Tiles    []tiling.Tiling `json:"tiles"`   // the lowerings that it covers
	// Further lists choices outside the combinations of these sets and tilings.
	Further []space.Choice `json:"further,omitempty"`
	// Layers is a bound for all lowerings on all sets of the devices; nil means there is none.
	Layers *shares.Bound `json:"layers,omitempty"`
	Leaves []Leaf        `json:"leaves"` // none: it covers no single choice
}

// Leaf is a bound of all plans of a choice.
type Leaf struct {
	space.Choice
	// Joined are more sets of devices, of whose plans it is a bound as well: its model joins theirs, see [Join].
	Joined []string `json:"joined,omitempty"`
	Graph  string   `json:"graph"` // hash
	Claims []Claim  `json:"claims"`
}

// Claim is a bound, in nanoseconds or nanojoules or their product, and its proofs: of parts that are all plans
// together, see [Condition].
type Claim struct {
	Objective problem.Objective `json:"objective"`
	Bound     float64           `json:"bound"`
	Proofs    []*Proof          `json:"proofs"`
}

// Parts are the objectives of the claims of a leaf: what bounds energy times time needs to know the least time.
func Parts(o problem.Objective) []problem.Objective {
	if o == problem.EDP {
		return []problem.Objective{problem.Time, o}
	}
	return []problem.Objective{o}
}

// parts returns the objectives of each leaf's claims. It fails for an objective without bounds.
func (c *Certificate) parts() ([]problem.Objective, error) {
	if !slices.Contains(problem.Objectives(), string(c.Objective)) {
		return nil, fmt.Errorf("bounds are of %s, not of %q", strings.Join(problem.Objectives(), ", "), c.Objective)
	}
	return Parts(c.Objective), nil
}

// Add adds a claim with its proofs, whose conditions must cover all plans of the leaf's model. A claim of
// energy times time comes after one of time.
func (l *Leaf) Add(m *Model, proofs ...*Proof) error {
	bound, err := l.prove(m, proofs, l.Claims)
	l.Claims = append(l.Claims, Claim{m.Objective, bound, proofs})
	return err
}

// prove returns the bound of some proofs, given earlier claims.
func (l *Leaf) prove(m *Model, proofs []*Proof, known []Claim) (float64, error) {
	if m.Objective == problem.EDP && len(known) > 0 {
		after := *m
		after.LeastSpan = max(m.LeastSpan, known[0].Bound)
		m = &after
	}
	lists := make([][]Condition, len(proofs))
	least := math.Inf(1)
	for i, p := range proofs {
		bound, err := p.Bound(m)
		if err != nil {
			return 0, err
		}
		least, lists[i] = min(least, bound), p.Where
	}
	if !complete(lists) {
		return 0, errors.New("its proofs leave out some plans: they are not all parts of splits in two")
	}
	return least, nil
}

// Bound returns the bound of the objective for the leaf's plans: seconds, joules, or their product.
func (l *Leaf) Bound() float64 {
	claim := &l.Claims[len(l.Claims)-1]
	if claim.Objective == problem.EDP {
		return below(claim.Bound / 1e18)
	}
	return claim.Bound / 1e9
}

// Bound returns the bound of the objective for all plans of the certificate.
func (c *Certificate) Bound() float64 {
	least := math.Inf(1)
	for i := range c.Leaves {
		least = min(least, c.Leaves[i].Bound())
	}
	return least
}

// Write writes a certificate, leaf by leaf: the text of all may take more memory than the search.
func (c *Certificate) Write(w io.Writer) error {
	c.Format = Format
	head := *c
	head.Leaves = []Leaf{}
	text, err := json.Marshal(&head)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w) // it keeps its first error
	out.Write(bytes.TrimSuffix(text, []byte("]}")))
	for i := range c.Leaves {
		if i > 0 {
			out.WriteByte(',')
		}
		if text, err = json.Marshal(&c.Leaves[i]); err != nil {
			return err
		}
		out.Write(text)
	}
	out.WriteString("]}\n")
	return out.Flush()
}

// Read reads one.
func Read(r io.Reader) (*Certificate, error) {
	c := &Certificate{}
	d := json.NewDecoder(dag.WithoutMark(r))
	d.DisallowUnknownFields()
	if err := d.Decode(c); err != nil {
		return nil, err
	}
	if c.Format != Format {
		return nil, fmt.Errorf("its format is %q; want %q, which dahl rerun makes", c.Format, Format)
	}
	parts, err := c.parts()
	if err != nil {
		return nil, err
	}
	for i := range c.Leaves {
		if err := c.Leaves[i].wellFormed(parts); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// wellFormed verifies that a leaf has one claim for each of some objectives.
func (l *Leaf) wellFormed(parts []problem.Objective) error {
	if len(l.Claims) != len(parts) {
		return fmt.Errorf("%s: %d claims; want one of each of %v", l.Choice, len(l.Claims), parts)
	}
	for i, claim := range l.Claims {
		if claim.Objective != parts[i] || len(claim.Proofs) == 0 || slices.Contains(claim.Proofs, nil) {
			return fmt.Errorf("%s: claim %d is of %q or has no proof; want a proof of %q", l.Choice, i, claim.Objective, parts[i])
		}
	}
	return nil
}
