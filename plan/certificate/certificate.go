package certificate

import (
	"encoding/json"
	"fmt"
	"io"

	"dahl/schedule"
)

// Format names the form of a certificate on disk.
const Format = "dahl-certificate 1"

// Certificate is a lower bound of an objective with its proof: of time, of energy, or of their product
// with a proof of each factor.
type Certificate struct {
	Format    string  `json:"format"`
	Objective string  `json:"objective"`
	Graph     string  `json:"graph"`  // hash
	Steady    bool    `json:"steady"` // of a step among many; else of one that runs alone
	Claims    []Claim `json:"claims"`
}

// Claim is a bound, in nanoseconds or nanojoules, and its proof.
type Claim struct {
	Objective Objective `json:"objective"`
	Bound     float64   `json:"bound"`
	Proof     *Proof    `json:"proof"`
}

// Add adds what a proof proves of a model.
func (c *Certificate) Add(m *Model, p *Proof) error {
	bound, err := p.Bound(m)
	c.Claims = append(c.Claims, Claim{m.Objective, bound, p})
	return err
}

// Bound is that of the objective: seconds, joules, or their product.
func (c *Certificate) Bound() float64 {
	if len(c.Claims) == 1 {
		return c.Claims[0].Bound / 1e9
	}
	bound := 1.0
	for _, claim := range c.Claims {
		bound *= claim.Bound / 1e9
	}
	return below(bound)
}

// Check proves a certificate again, for one graph of a priced program.
func (c *Certificate) Check(priced *schedule.Priced, graph int) error {
	if g := priced.Program.Graphs[graph]; c.Graph != g.Hash() {
		return fmt.Errorf("it is of a graph with hash %.12s, and this one has %.12s", c.Graph, g.Hash())
	}
	if len(c.Claims) == 0 {
		return fmt.Errorf("it claims nothing")
	}
	for _, claim := range c.Claims {
		m, err := NewModel(priced, graph, claim.Objective, c.Steady)
		if err != nil {
			return err
		}
		bound, err := claim.Proof.Bound(m)
		if err != nil {
			return err
		}
		if !(claim.Bound <= bound) {
			return fmt.Errorf("it claims that no plan takes less %s than %.12g, and proves %.12g", claim.Objective, claim.Bound, bound)
		}
	}
	return nil
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
	for _, claim := range c.Claims {
		if claim.Proof == nil || claim.Objective != Time && claim.Objective != Energy {
			return nil, fmt.Errorf("a claim of %q without a proof, or of what has none", claim.Objective)
		}
	}
	return c, nil
}
