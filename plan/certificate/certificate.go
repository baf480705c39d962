package certificate

import (
	"encoding/json"
	"fmt"
	"io"
	"math"

	"dahl/plan/space"
)

// Format names the form of a certificate on disk.
const Format = "dahl-certificate 2"

// EDP is the objective of a certificate that bounds joules times seconds.
const EDP = "edp"

// Certificate is a lower bound of an objective over all plans of all choices of a space: sets of devices with
// lowerings. Each leaf proves a bound of the plans of one choice, and of those choices whose plans it relaxes.
type Certificate struct {
	Format    string   `json:"format"`
	Objective string   `json:"objective"` // time, energy or edp
	Steady    bool     `json:"steady"`    // of a step among many; else of one that runs alone
	Devices   []string `json:"devices"`   // the sets that it covers
	Tiles     []string `json:"tiles"`     // the lowerings that it covers
	Leaves    []Leaf   `json:"leaves"`
}

// Leaf is a bound of all plans of a choice.
type Leaf struct {
	space.Choice
	Graph  string  `json:"graph"` // hash
	Claims []Claim `json:"claims"`
}

// Claim is a bound, in nanoseconds or nanojoules, and its proof.
type Claim struct {
	Objective Objective `json:"objective"`
	Bound     float64   `json:"bound"`
	Proof     *Proof    `json:"proof"`
}

// Parts are the objectives of models that bound an objective: a product is bounded by its factors.
func Parts(objective string) ([]Objective, error) {
	switch objective {
	case string(Time), string(Energy):
		return []Objective{Objective(objective)}, nil
	case EDP:
		return []Objective{Time, Energy}, nil
	}
	return nil, fmt.Errorf("bounds are of %s, %s or %s, not of %q", Time, Energy, EDP, objective)
}

// Add adds what a proof proves of a model.
func (l *Leaf) Add(m *Model, p *Proof) error {
	bound, err := p.Bound(m)
	l.Claims = append(l.Claims, Claim{m.Objective, bound, p})
	return err
}

// Bound is that of the objective for the leaf's plans: seconds, joules, or their product.
func (l *Leaf) Bound() float64 {
	if len(l.Claims) == 1 {
		return l.Claims[0].Bound / 1e9
	}
	bound := 1.0
	for _, claim := range l.Claims {
		bound *= claim.Bound / 1e9
	}
	return below(bound)
}

// Bound is that of the objective for all plans that the certificate covers.
func (c *Certificate) Bound() float64 {
	least := math.Inf(1)
	for i := range c.Leaves {
		least = min(least, c.Leaves[i].Bound())
	}
	return least
}

// Write writes a certificate.
func (c *Certificate) Write(w io.Writer) error {
	c.Format = Format
	return json.NewEncoder(w).Encode(c)
}

// Read reads one.
func Read(r io.Reader) (*Certificate, error) {
	c := &Certificate{}
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	if err := d.Decode(c); err != nil {
		return nil, err
	}
	if c.Format != Format {
		return nil, fmt.Errorf("its format is %q; want %q", c.Format, Format)
	}
	parts, err := Parts(c.Objective)
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
func (l *Leaf) wellFormed(parts []Objective) error {
	if len(l.Claims) != len(parts) {
		return fmt.Errorf("%s: %d claims; want one of each of %v", l.Choice, len(l.Claims), parts)
	}
	for i, claim := range l.Claims {
		if claim.Objective != parts[i] || claim.Proof == nil {
			return fmt.Errorf("%s: claim %d is of %q or has no proof; want a proof of %q", l.Choice, i, claim.Objective, parts[i])
		}
	}
	return nil
}
