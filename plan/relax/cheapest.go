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
	s.moves = make([]float64, len(f.m.Latency))
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

// level looks at the tiles of a level. The share is best for the option of those early in a sum that is best for whole results, and then these take their best.
func (s *search) level(w *shares.Way, l *shares.Level, c tiled, also float64) {
	options := l.Options
	early := func(share float64) (best *shares.Option, least float64) {
		least = math.Inf(1)
		for i := range options {
			o := &options[i]
			if v := s.rest(o) + s.units(o)*o.Fixed/share + s.chain*o.Fixed + s.moves[s.f.m.Memory[o.Device]]; v < least {
				best, least = o, v
			}
		}
		return best, least
	}
	again := func(o *shares.Option) float64 { return s.units(o)*o.Again + o.AgainNanojoules }
	for k := range w.Sums {
		c.sum = &w.Sums[k]
		guess, _ := early(l.Most)
		if c.sum.Accumulators > 1 && len(w.Adds) > 0 {
			c.add = s.cheapest(w.Adds, l.Most, s.rest)
			c.last = s.cheapest(w.Adds, l.Most, func(o *shares.Option) float64 { return s.rest(o) + s.chain*o.Fixed })
		}
		empty, more := s.cheapest(options, l.Most, again), float64(c.sum.Terms-1)
		for i := range options {
			o, late := &options[i], c.sum.Part
			perTile := late*s.units(o)*o.Fixed + (1-late)*s.units(guess)*guess.Fixed + more*s.units(empty)*empty.Fixed
			value := also + late*(s.rest(o)+s.chain*o.Fixed+s.moves[s.f.m.Memory[o.Device]]) + (more+float64(c.sum.Adding))*again(empty)
			if c.sum.Accumulators > 1 && c.add != nil {
				n := float64(c.sum.Accumulators - 2)
				perTile += n*s.units(c.add)*c.add.Fixed + s.units(c.last)*c.last.Fixed
				value += n*s.rest(c.add) + s.rest(c.last) + s.chain*c.last.Fixed
			}
			perShare := c.sum.Late * s.chain * o.Nanos
			c.share = l.Most
			if perTile < perShare*l.Most*l.Most {
				c.share = max(math.Sqrt(perTile/perShare), l.Least, 1e-9)
			}
			best := o
			if late < 1 {
				rest := 0.0
				best, rest = early(c.share)
				value += (1-late)*rest - (1-late)*s.units(guess)*guess.Fixed/c.share
			}
			if value += perTile/c.share + perShare*c.share; value < s.values[o.Device] {
				found := c
				found.late, found.early, found.empty = o, best, empty
				s.best[o.Device], s.values[o.Device] = &found, value
			}
		}
	}
}

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
