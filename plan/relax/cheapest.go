package relax

import (
	"math"
	"slices"

	"dahl/plan/shares"
)

// search finds the tiles of some work that have least under some multipliers, for each device of those late in a sum.
type search struct {
	f      *multipliers
	x      []float64
	work   int
	best   []*tiled // by device
	values []float64

	chain, other float64
	moves        []float64 // by memory
}

// search looks at all ways to run some work by a view of it, for tiles that have less than a limit.
func (f *multipliers) search(x []float64, work, view int, limit float64) *search {
	s := &search{f: f, x: x, work: work, best: make([]*tiled, len(f.units)), values: slices.Repeat([]float64{limit}, len(f.units))}
	for _, l := range f.links[s.work] {
		if f.m.Chains[l.chain][l.link].Uniform {
			s.chain += s.x[f.chains[l.chain]]
		} else {
			s.other += s.x[f.chains[l.chain]]
		}
	}
	if s.other > 0 {
		s.other *= f.leastFixed(s.work)
	}
	s.moves = make([]float64, len(f.m.Places))
	for at := range s.moves {
		f.eachMove(s.work, at, func(column int, sign float64) { s.moves[at] += sign * s.x[column] })
	}
	ways := f.m.Views[work][view]
	for i := range ways {
		w := &ways[i]
		also := s.other
		for _, other := range w.Also {
			also += s.x[f.least[other]]
		}
		for k := range w.Levels {
			s.level(w, &w.Levels[k], tiled{way: w}, also)
		}
	}
	return s
}

// units is the multiplier of the device of an option.
func (s *search) units(o *shares.Option) float64 { return max(0, s.x[s.f.units[o.Device]]) }

// rest is the costs of an option, but for the chain, and for the costs that depend on the share of a tile.
func (s *search) rest(o *shares.Option) float64 { return s.units(o)*o.Nanos + o.Nanojoules }

// level looks at the tiles of a level. Early tiles of a sum take the option that is best for whole results.
func (s *search) level(w *shares.Way, l *shares.Level, c tiled, also float64) {
	whole := func(o *shares.Option) float64 { return s.rest(o) + s.chain*o.Fixed + s.moves[s.f.m.Memory[o.Device]] }
	c.early = s.cheapest(l.Options, l.Most, whole)
	c.empty = s.cheapest(l.Options, l.Most, s.again)
	early, empty, again := costs{s.units(c.early) * c.early.Fixed, whole(c.early)}, s.units(c.empty)*c.empty.Fixed, s.again(c.empty)
	var add, last costs
	if len(w.Adds) > 0 {
		onChain := func(o *shares.Option) float64 { return s.rest(o) + s.chain*(o.Fixed+l.Least*o.Nanos) }
		c.add, c.last = s.cheapest(w.Adds, l.Most, s.rest), s.cheapest(w.Adds, l.Most, onChain)
		add, last = costs{s.units(c.add) * c.add.Fixed, s.rest(c.add)}, costs{s.units(c.last) * c.last.Fixed, onChain(c.last)}
	}
	for i := range l.Options {
		o := &l.Options[i]
		late, perShare := costs{s.units(o) * o.Fixed, whole(o)}, s.chain*o.Nanos
		for k := range w.Sums {
			sum := &w.Sums[k]
			more := float64(sum.Terms - 1)
			all := costs{more * empty, also + (more+float64(sum.Adding))*again}
			all.add(&late, sum.Part)
			all.add(&early, 1-sum.Part)
			if sum.Accumulators > 1 {
				all.add(&add, float64(sum.Accumulators-2))
				all.add(&last, 1)
			}
			share, perShare := l.Most, sum.Late*perShare
			if all.perTile < perShare*share*share {
				share = max(math.Sqrt(all.perTile/perShare), l.Least, 1e-9)
			}
			if value := all.perTile/share + all.rest + perShare*share; value < s.values[o.Device] {
				found := c
				found.sum, found.late, found.share = sum, o, share
				s.best[o.Device], s.values[o.Device] = &found, value
			}
		}
	}
}

// costs are costs of tiles of a share: perTile/share + rest.
type costs struct{ perTile, rest float64 }

func (p *costs) add(other *costs, times float64) {
	p.perTile += times * other.perTile
	p.rest += times * other.rest
}

// again is the costs of an option for another term of all results.
func (s *search) again(o *shares.Option) float64 { return s.units(o)*o.Again + o.AgainNanojoules }

// cheapest is the option with the least for tiles of a share, besides their fixed times.
func (s *search) cheapest(options []shares.Option, share float64, rest func(o *shares.Option) float64) (best *shares.Option) {
	least := math.Inf(1)
	for i := range options {
		o := &options[i]
		if v := s.units(o)*o.Fixed/share + rest(o); v < least {
			best, least = o, v
		}
	}
	return best
}
