package best

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
)

// planKinds plans for devices of one kind with all their units, so that a descent begins near the best also where
// another kind only costs time.
func (f *finder) planKinds(ctx context.Context) error {
	return f.planFor(ctx, slices.DeleteFunc(slices.Clone(f.candidates), func(c *candidate) bool {
		return !isPlain(c.units())
	}))
}

// planBest plans in all ways for the choices that are best so far.
func (f *finder) planBest(ctx context.Context) error {
	return f.planBatch(ctx, f.bestOf(3), (*candidate).planAll)
}

// descend goes downhill from the smallest set of each combination of kinds of devices, with the lowering that is best
// there, and from the best choice known.
func (f *finder) descend(ctx context.Context) error {
	starts := f.starts()
	for i, from := range starts {
		if err := f.planFor(ctx, []*candidate{from}); err != nil {
			return err
		}
		var err error
		if starts[i], err = f.step(ctx, from, tilesAxis); err != nil {
			return err
		}
	}
	slices.SortStableFunc(starts, byValue)
	for _, from := range append(starts, f.best) {
		for before := (*candidate)(nil); before != from; {
			before = from
			for _, axis := range f.axes() {
				var err error
				if from, err = f.step(ctx, from, axis); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// step plans for the choices that differ from one in one respect, and takes the best of all: of equal ones that one.
func (f *finder) step(ctx context.Context, from *candidate, axis string) (*candidate, error) {
	neighbours := f.along(from, axis)
	if err := f.planFor(ctx, neighbours); err != nil {
		return nil, err
	}
	return slices.MinFunc(slices.Insert(neighbours, 0, from), byValue), nil
}

func byValue(a, b *candidate) int { return cmp.Compare(a.Value, b.Value) }

// starts are the choices of the first lowering with the fewest workers of each combination of kinds.
func (f *finder) starts() []*candidate {
	byUnits := slices.Clone(f.candidates)
	slices.SortStableFunc(byUnits, func(a, b *candidate) int {
		return cmp.Compare(len(a.priced.Platform.Workers), len(b.priced.Platform.Workers))
	})
	seen, starts := map[string]bool{}, []*candidate{}
	for _, c := range byUnits {
		kinds := fmt.Sprint(slices.Sorted(maps.Keys(c.units().byKind())))
		if c.Tiles == f.space.Tiles[0] && !seen[kinds] {
			seen[kinds] = true
			starts = append(starts, c)
		}
	}
	return starts
}

// tilesAxis is the axis of lowerings; the others are kinds of devices.
const tilesAxis = ""

// axes lists the respects in which choices differ.
func (f *finder) axes() []string {
	kinds := map[string]bool{tilesAxis: true}
	for _, c := range f.candidates {
		for kind := range c.units().byKind() {
			kinds[kind] = true
		}
	}
	return slices.Sorted(maps.Keys(kinds))
}

// along are the choices that differ from one in one respect only.
func (f *finder) along(from *candidate, axis string) []*candidate {
	position := func(c *candidate) map[string]string {
		at := c.units().byKind()
		at[tilesAxis] = c.Tiles.String()
		delete(at, axis)
		return at
	}
	here, neighbours := position(from), []*candidate{}
	for _, c := range f.candidates {
		if c != from && maps.Equal(position(c), here) {
			neighbours = append(neighbours, c)
		}
	}
	return neighbours
}

// planFor plans for some choices by ascending bound, except choices whose bound excludes a better plan. What is
// planned does not depend on how many goroutines run at a time.
func (f *finder) planFor(ctx context.Context, some []*candidate) error {
	const most = 8
	rest := slices.Clone(some)
	slices.SortStableFunc(rest, func(a, b *candidate) int { return cmp.Compare(a.bound, b.bound) })
	rest = slices.DeleteFunc(rest, func(c *candidate) bool { return c.planned })
	for len(rest) > 0 && f.left > f.Nodes/2 {
		now := rest[:min(most, len(rest))]
		rest = rest[len(now):]
		if f.best.Value <= now[0].bound {
			return nil
		}
		if err := f.planBatch(ctx, now, (*candidate).first); err != nil {
			return err
		}
	}
	return nil
}
