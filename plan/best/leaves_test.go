package best

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"dahl/must"
	"dahl/plan/certificate"
	"dahl/plan/exact"
	"dahl/plan/problem"
	"dahl/plan/relax"
	"dahl/plan/space"
	"dahl/schedule"
)

// spaceOf is all sets of devices of an instance but the last, each priced once, the choice of the last set, and the least
// value that any plan on each of them has.
func spaceOf(t *testing.T, in *instance, o problem.Objective) (s *space.Space, further space.Choice, least map[space.Choice]float64, ok bool) {
	t.Helper()
	of := space.Of(in.priced, space.Sets(in.priced.Platform, in.priced.Program.Graphs[0]))
	type priced struct {
		*schedule.Priced
		error
	}
	var known sync.Map
	last := len(of.Devices) - 1
	further = space.Choice{Devices: of.Devices[last]}
	s = &space.Space{Devices: of.Devices[:last], Tiles: of.Tiles, Price: func(c space.Choice) (*schedule.Priced, error) {
		p, ok := known.Load(c)
		if !ok {
			made, err := of.Price(c)
			p, _ = known.LoadOrStore(c, priced{made, err})
		}
		return p.(priced).Priced, p.(priced).error
	}}
	least = map[space.Choice]float64{}
	for _, choice := range append(s.Choices(), further) {
		part := must.Get(s.Price(choice))(t)
		found, err := exact.Search(t.Context(), part, exact.Options{Objective: o, Nodes: 20_000})
		if err != nil || !found.Proven {
			return nil, further, nil, false
		}
		unit := 1e9
		if o == problem.EDP {
			unit = 1e18
		}
		least[choice] = found.Value * unit
	}
	return s, further, least, true
}

// leastOf is the least value that any plan of some choices has.
func leastOf(least map[space.Choice]float64, choices []space.Choice) float64 {
	value := math.Inf(1)
	for _, c := range choices {
		value = min(value, least[c])
	}
	return value
}

// certify proves a bound of all plans of a space and of a further choice: of those on both devices in one leaf of all sets that have
// both, and of each device alone in one leaf of its numbers of units.
func certify(t *testing.T, in *instance, s *space.Space, further space.Choice, o problem.Objective, least float64) *certificate.Certificate {
	t.Helper()
	c := &certificate.Certificate{Objective: o, Devices: s.Devices, Tiles: s.Tiles, Further: []space.Choice{further}}
	at := map[string]int{}
	for _, choice := range append(s.Choices(), further) {
		set := choice.Devices
		kind := "both"
		if set != "" && !strings.Contains(set, ",") {
			kind = set[:2]
		}
		i, ok := at[kind]
		if !ok {
			i = len(c.Leaves)
			at[kind] = i
			c.Leaves = append(c.Leaves, certificate.Leaf{Choice: space.Choice{Devices: set}, Graph: in.priced.Program.Graphs[0].Hash()})
			continue
		}
		c.Leaves[i].Joined = append(c.Leaves[i].Joined, set)
	}
	for i := range c.Leaves {
		prove(t, &c.Leaves[i], s, o, least*1.3, 12)
	}
	return c
}

// prove gives a leaf its claims.
func prove(t *testing.T, l *certificate.Leaf, s *space.Space, o problem.Objective, value float64, nodes int) {
	t.Helper()
	parts := certificate.Parts(o)
	for _, part := range parts {
		m, err := l.Model(s, part, &certificate.Models{})
		if err != nil {
			t.Fatal(err)
		}
		known := value
		if part != o {
			known = 1e5
		}
		if part == problem.EDP {
			m.LeastSpan = l.Claims[0].Bound
		}
		found, err := relax.Branch(t.Context(), m, known, nodes)
		if err == nil {
			err = l.Add(m, found.Proofs...)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// copyOf is a certificate that was written and read, which shares nothing with the first.
func copyOf(t *testing.T, c *certificate.Certificate) *certificate.Certificate {
	t.Helper()
	var file bytes.Buffer
	must.Do(t, c.Write(&file))
	return must.Get(certificate.Read(&file))(t)
}

// families are all kinds of rows.
var families = []certificate.Family{certificate.Assign, certificate.Precede, certificate.Deliver, certificate.Finish, certificate.Area, certificate.Awake,
	certificate.Span, certificate.Copy, certificate.Engine, certificate.Tail, certificate.Between,
	certificate.Pool, certificate.Given, certificate.Spread}

// mutate changes something of a certificate, and then has each leaf claim all that its proofs prove, as one
// would who wants to be believed.
func mutate(c *certificate.Certificate, s *space.Space, o problem.Objective, r *rand.Rand) {
	for range 1 + r.IntN(3) {
		if len(c.Leaves) == 0 {
			return
		}
		i := r.IntN(len(c.Leaves))
		l := &c.Leaves[i]
		claim := &l.Claims[r.IntN(len(l.Claims))]
		if len(claim.Proofs) == 0 {
			continue
		}
		k := r.IntN(len(claim.Proofs))
		p := claim.Proofs[k]
		switch r.IntN(19) {
		case 0:
			c.Leaves = slices.Delete(c.Leaves, i, i+1)
		case 1:
			c.Leaves = append(c.Leaves, *l)
		case 2:
			l.Devices = s.Devices[r.IntN(len(s.Devices))]
		case 3:
			l.Joined = l.Joined[:r.IntN(len(l.Joined)+1)]
		case 5:
			c.Devices = c.Devices[:r.IntN(len(c.Devices)+1)]
		case 6, 7:
			claim.Proofs = slices.Delete(claim.Proofs, k, k+1)
		case 8:
			other := c.Leaves[r.IntN(len(c.Leaves))]
			claim.Proofs = append(claim.Proofs, other.Claims[r.IntN(len(other.Claims))].Proofs...)
		case 9:
			p.Where = p.Where[:r.IntN(len(p.Where)+1)]
		case 10, 11:
			if len(p.Where) > 0 {
				w := &p.Where[r.IntN(len(p.Where))]
				switch r.IntN(4) {
				case 0:
					w.More = !w.More
				case 1:
					w.Most = max(0, w.Most+float64(r.IntN(3)-1))
				case 2:
					w.Devices = []int{r.IntN(3)}
				case 3:
					w.Tasks = w.Tasks[:r.IntN(len(w.Tasks)+1)]
				}
			}
		case 12:
			if len(p.Rows) > 0 {
				p.Rows[r.IntN(len(p.Rows))].Multiplier *= 4 * r.Float64()
			}
		case 13:
			if len(p.Rows) > 0 {
				row := &p.Rows[r.IntN(len(p.Rows))].Row
				row.Where, row.From = r.IntN(3), row.To
			}
		case 14:
			p.Value *= 4 * r.Float64()
		case 16:
			if len(p.Rows) > 0 {
				p.Rows[r.IntN(len(p.Rows))].Row.Family = families[r.IntN(len(families))]
			}
		case 17:
			if len(p.Rows) > 0 {
				row := &p.Rows[r.IntN(len(p.Rows))]
				row.Row.From, row.Row.To = row.Row.To, int32(r.IntN(8))
			}
		case 18:
			if len(p.Rows) > 0 {
				p.Rows = append(p.Rows, p.Rows[r.IntN(len(p.Rows))])
			}
		case 15:
			for _, q := range claim.Proofs {
				q.Value *= 2
			}
		case 4:
			c.Further = c.Further[:r.IntN(len(c.Further)+1)]
		}
	}
	for i := range c.Leaves {
		l := &c.Leaves[i]
		claims := l.Claims
		l.Claims = nil
		for _, claim := range claims {
			m, err := l.Model(s, claim.Objective, &certificate.Models{})
			if err == nil {
				err = l.Add(m, claim.Proofs...)
			}
			if err != nil {
				l.Claims = claims // refused, whatever it claims
				break
			}
		}
	}
}

// Of choices of which the least value is known, no certificate of 10,000 that somebody changed is accepted with
// a bound above that of the choices that it covers: of the space, and its further ones. Leaves, sets, conditions, parts of proofs, rows and multipliers are changed, and hashes and
// claims fit what is changed.
func TestMutantsOfLeaves(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 7))
	objectives := []problem.Objective{problem.Time, problem.Energy, problem.EDP}
	mutants, accepted, near, cases := 0, 0, 0, 10_000
	if testing.Short() {
		cases = 2000
	}
	for n := 0; mutants < cases; n++ {
		in, ok := randomInstance(t, r)
		if !ok {
			continue
		}
		o := objectives[n%3]
		s, further, values, ok := spaceOf(t, &in, o)
		if !ok {
			continue
		}
		least := leastOf(values, append(s.Choices(), further))
		c := certify(t, &in, s, further, o, least)
		if err := c.Check(s); err != nil {
			t.Fatalf("%s, unchanged: %v", o, err)
		}
		unit := 1e9
		if o == problem.EDP {
			unit = 1e18
		}
		if c.Bound()*unit > 0.8*least {
			near++
		}
		for range 500 {
			mutants++
			mutant := copyOf(t, c)
			mutate(mutant, s, o, r)
			if mutant.Check(s) != nil {
				continue
			}
			accepted++
			least := leastOf(values, append(s.Choices(), mutant.Further...))
			if bound := mutant.Bound() * unit; bound > least*(1+tolerance) {
				t.Errorf("a mutant proves %s %.12g, and a plan takes %.12g", o, bound, least)
			}
		}
	}
	if accepted < mutants/20 || accepted > mutants*9/10 || near < cases*8/10_000 {
		t.Errorf("%d of %d mutants were accepted, and %d certificates come near the least: the test tests little", accepted, mutants, near)
	}
}
