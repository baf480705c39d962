package shares

import "math"

// candidates are tiles of some work. One of those whose value less its error is at most least has the least of all.
type candidates struct {
	all   []candidate
	least float64
}

type candidate struct {
	of           *tiles
	sum          *Sum
	level        *Level
	late         *Option
	value, error float64
}

// candidates adds the candidates of a way.
func (t *tiles) candidates(found *candidates) {
	for s := range t.Sums {
		for i := range t.Levels {
			t.level(&t.Sums[s], &t.Levels[i], found)
		}
	}
}

// roughLine is a straight line in 1/share, in floating-point numbers.
type roughLine struct{ most, least float64 } // its values for the most and the least share

func newRoughLine() roughLine { return roughLine{math.Inf(1), math.Inf(1)} }

// lower moves the ends of the line down to the costs of an option.
func (r *roughLine) lower(l *Level, perTile, rest float64) {
	r.most, r.least = min(r.most, perTile/l.Most+rest), min(r.least, perTile/l.Least+rest)
}

// of is the line as perTile/share + rest.
func (r *roughLine) of(l *Level) (perTile, rest float64) {
	if l.Least < l.Most {
		perTile = (r.least - r.most) / (1/l.Least - 1/l.Most)
	}
	return perTile, r.most - perTile/l.Most
}

// level adds candidates of a level, as [tiles.exact] computes them. All terms but moves are positive, so that a few roundings change a sum by less than a part of 10^11 of it.
func (t *tiles) level(s *Sum, l *Level, found *candidates) {
	r, options := &t.rough, l.Options
	early, empty, add, last, again, size := newRoughLine(), newRoughLine(), newRoughLine(), newRoughLine(), math.Inf(1), 0.0
	rest := func(o *Option) float64 {
		moved := r.moves[t.memory[o.Device]]
		size = max(size, math.Abs(moved))
		return float64(t.p.Units[o.Device]*o.Nanos) + o.Nanojoules + float64(r.chain*o.Fixed) + moved
	}
	for k := range options {
		o := &options[k]
		u := t.p.Units[o.Device]
		once := float64(u*o.Again) + o.AgainNanojoules
		early.lower(l, u*o.Fixed, rest(o))
		empty.lower(l, u*o.Fixed, once)
		again = min(again, once)
	}
	for k := range t.Adds {
		o := &t.Adds[k]
		u := t.p.Units[o.Device]
		rest := float64(u*o.Nanos) + o.Nanojoules
		add.lower(l, u*o.Fixed, rest)
		last.lower(l, u*o.Fixed, rest+float64(r.chain*(o.Fixed+float64(l.Least*o.Nanos))))
	}
	perTile, value := early.of(l)
	perTile, value = (1-s.Part)*perTile, (1-s.Part)*value+r.also
	plus := func(line *roughLine, n float64) {
		if n > 0 {
			per, rest := line.of(l)
			perTile += float64(n * per)
			value += float64(n * rest)
		}
	}
	plus(&empty, float64(s.Terms-1))
	if s.Accumulators > 1 && len(t.Adds) > 0 {
		plus(&add, float64(s.Accumulators-2))
		plus(&last, 1)
	}
	if s.Adding > 0 {
		value += float64(s.Adding) * again
	}
	for k := range options {
		o := &options[k]
		perTile, value := perTile+float64(s.Part*t.p.Units[o.Device]*o.Fixed), value+float64(s.Part*rest(o))
		perShare := float64(s.Late * r.chain * o.Nanos)
		q := min(l.Most, max(l.Least, math.Sqrt(perTile/perShare)))
		if !(q > 0) {
			q = l.Most
		}
		value += perTile/q + float64(perShare*q)
		error := (math.Abs(value) + 2*size + early.least + float64(s.Terms)*empty.least) * 1e-11
		if s.Accumulators > 1 && len(t.Adds) > 0 {
			error += float64(s.Accumulators) * last.least * 1e-11
		}
		if value-error <= found.least {
			found.all = append(found.all, candidate{t, s, l, o, value, error})
			found.least = min(found.least, value+error)
		}
	}
}
