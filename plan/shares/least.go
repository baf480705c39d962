package shares

import (
	"errors"
	"math"
	"math/big"
)

// leasts finds the least of works over all ways to run them.
type leasts struct {
	m     *Model
	p     *Proof
	known []*big.Rat // by work; nil means that it is not known yet
}

// counted is the multipliers of some work.
type counted struct {
	chain, other *big.Rat   // of chains, times how often they have the work, by uniform draws or others
	moves        []*big.Rat // by place, and then by memory: of all its places
}

// of is the least of some work: the greater one of what its views say.
func (l *leasts) of(work int) (*big.Rat, error) {
	if l.known[work] != nil {
		return l.known[work], nil
	}
	c := l.counted(work)
	greatest := new(big.Rat)
	for i, view := range l.m.Views[work] {
		least, err := l.view(view, c)
		if err != nil {
			return nil, err
		}
		if i == 0 || least.Cmp(greatest) > 0 {
			greatest = least
		}
	}
	l.known[work] = greatest
	return greatest, nil
}

// view is the least of some work by a view of it.
func (l *leasts) view(ways []Way, c *counted) (*big.Rat, error) {
	var least, fixed *big.Rat
	found := candidates{least: math.Inf(1)}
	for i := range ways {
		t, err := l.tiles(&ways[i], c)
		if err != nil {
			return nil, err
		}
		t.candidates(&found)
		fixed = lesser(fixed, t.fixed())
	}
	for _, k := range found.all {
		if k.value-k.error <= found.least {
			least = lesser(least, k.of.exact(k.sum, k.level, k.late))
		}
	}
	if least == nil {
		return nil, errors.New("some work can run on no device")
	}
	return least.Add(least, fixed.Mul(fixed, c.other)), nil
}

// lesser is the lesser of two numbers of which the first may be missing.
func lesser(x, y *big.Rat) *big.Rat {
	if x == nil || y.Cmp(x) < 0 {
		return y
	}
	return x
}

// counted adds up the multipliers of some work.
func (l *leasts) counted(work int) *counted {
	c := &counted{chain: new(big.Rat), other: new(big.Rat)}
	for range l.m.Latency {
		c.moves = append(c.moves, new(big.Rat))
	}
	for chain, multiplier := range l.p.Chains {
		for i, link := range l.m.Chains[chain] {
			switch {
			case link.Work != work:
				continue
			case link.Uniform:
				c.chain.Add(c.chain, rat(multiplier))
			default:
				c.other.Add(c.other, rat(multiplier))
			}
			if chain >= len(l.p.Moves) || i >= len(l.p.Moves[chain]) {
				continue
			}
			moves := l.p.Moves[chain]
			before := (i + len(moves) - 1) % len(moves)
			for at := range c.moves {
				c.moves[at].Add(c.moves[at], rat(moves[before][at]))
				c.moves[at].Sub(c.moves[at], rat(moves[i][at]))
			}
		}
	}
	for at, places := range l.m.Places {
		for _, several := range places[1:] {
			c.moves[at].Add(c.moves[at], c.moves[several])
		}
	}
	return c
}

// tiles are the costs of a way under some multipliers. All tiles of a result with a share of all results take perTile/share + rest + share·perShare.
type tiles struct {
	*Way
	*counted
	p      *Proof
	memory []int
	also   *big.Rat // the least of Also

	rough struct {
		chain, also float64
		moves       []float64
	}
}

func (l *leasts) tiles(w *Way, c *counted) (*tiles, error) {
	t := &tiles{Way: w, counted: c, p: l.p, memory: l.m.Memory, also: new(big.Rat)}
	for _, other := range w.Also {
		least, err := l.of(other)
		if err != nil {
			return nil, err
		}
		t.also.Add(t.also, least)
	}
	r := &t.rough
	r.chain, r.also = float(c.chain), float(t.also)
	for _, m := range c.moves {
		r.moves = append(r.moves, float(m))
	}
	return t, nil
}

func float(x *big.Rat) float64 { f, _ := x.Float64(); return f }

// fixed is the least fixed time of all options.
func (t *tiles) fixed() *big.Rat {
	least := math.Inf(1)
	for i := range t.Levels {
		for _, o := range t.Levels[i].Options {
			least = min(least, o.Fixed)
		}
	}
	return rat(least)
}

// line is a straight line in 1/share. From the least share to the most it is nowhere above the costs of the best of some options: the best of
// linear functions is concave, and so not below the line between its ends.
type line struct {
	least, most     *big.Rat // shares
	atLeast, atMost *big.Rat
}

// lower moves the ends of the line down to the costs of an option.
func (l *line) lower(perTile, rest *big.Rat) {
	at := func(share *big.Rat) *big.Rat { x := new(big.Rat).Quo(perTile, share); return x.Add(x, rest) }
	l.atMost, l.atLeast = lesser(l.atMost, at(l.most)), lesser(l.atLeast, at(l.least))
}

// addTo adds the line some times as perTile/share + rest.
func (l *line) addTo(perTile, rest, times *big.Rat) {
	per := new(big.Rat)
	if l.least.Cmp(l.most) < 0 {
		per.Sub(l.atLeast, l.atMost)
		per.Quo(per, new(big.Rat).Sub(new(big.Rat).Inv(l.least), new(big.Rat).Inv(l.most)))
	}
	left := new(big.Rat).Sub(l.atMost, new(big.Rat).Quo(per, l.most))
	perTile.Add(perTile, per.Mul(per, times))
	rest.Add(rest, left.Mul(left, times))
}

// rest is the costs of an option for the whole work, but for those that depend on the share of a tile.
func (t *tiles) rest(o *Option) *big.Rat {
	x := product(t.p.Units[o.Device], o.Nanos)
	x.Add(x, rat(o.Nanojoules))
	x.Add(x, t.moves[t.memory[o.Device]])
	return x.Add(x, new(big.Rat).Mul(t.chain, rat(o.Fixed)))
}

// exact is no more than the costs of tiles of a level, if the late tiles of a sum have an option.
func (t *tiles) exact(s *Sum, l *Level, late *Option) *big.Rat {
	least, most, part := rat(l.Least), rat(l.Most), rat(s.Part)
	perTile, rest := product(t.p.Units[late.Device], late.Fixed), t.rest(late)
	perTile.Mul(perTile, part)
	rest.Mul(rest, part)
	times := func(n int) *big.Rat { return new(big.Rat).SetInt64(int64(n)) }
	if s.Terms > 1 {
		early, empty := line{least: least, most: most}, line{least: least, most: most}
		var again *big.Rat
		for i := range l.Options {
			o := &l.Options[i]
			fixed, once := product(t.p.Units[o.Device], o.Fixed), product(t.p.Units[o.Device], o.Again)
			once.Add(once, rat(o.AgainNanojoules))
			early.lower(fixed, t.rest(o))
			empty.lower(fixed, once)
			again = lesser(again, once)
		}
		early.addTo(perTile, rest, new(big.Rat).Sub(times(1), part))
		empty.addTo(perTile, rest, times(s.Terms-1))
		rest.Add(rest, again.Mul(again, times(s.Adding)))
	}
	if s.Accumulators > 1 && len(t.Adds) > 0 {
		add, last := line{least: least, most: most}, line{least: least, most: most}
		for i := range t.Adds {
			o := &t.Adds[i]
			fixed, nanos := product(t.p.Units[o.Device], o.Fixed), product(t.p.Units[o.Device], o.Nanos)
			nanos.Add(nanos, rat(o.Nanojoules))
			add.lower(fixed, nanos)
			onChain := product(l.Least, o.Nanos)
			onChain.Add(onChain, rat(o.Fixed))
			last.lower(fixed, nanos.Add(nanos, onChain.Mul(onChain, t.chain)))
		}
		add.addTo(perTile, rest, times(s.Accumulators-2))
		last.addTo(perTile, rest, times(1))
	}
	rest.Add(rest, t.also)
	perShare := new(big.Rat).Mul(t.chain, rat(late.Nanos))
	perShare.Mul(perShare, rat(s.Late))
	return leastShare(perTile, rest, perShare, least, most)
}

// leastShare is no more than perTile/share + rest + share·perShare for any share from least to most.
func leastShare(perTile, rest, perShare, least, most *big.Rat) *big.Rat {
	for _, at := range [...]*big.Rat{least, most} {
		grown := new(big.Rat).Mul(perShare, at)
		side := perTile.Cmp(new(big.Rat).Mul(grown, at)) // of the share where both are equal: above, at or below
		if at == least && side <= 0 || at == most && side >= 0 {
			return rest.Add(rest, grown.Add(grown, new(big.Rat).Quo(perTile, at)))
		}
	}
	product := new(big.Rat).Mul(perTile, perShare)
	root := rat(math.Sqrt(float(product)) * (1 - 1e-15))
	if new(big.Rat).Mul(root, root).Cmp(product) > 0 {
		root.SetInt64(0) // where a number so small has no root as exact
	}
	return rest.Add(rest, root.Add(root, root))
}
