package best

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"dahl/parallel"
	"dahl/plan/space"
)

const (
	// mostAlone is how many sets of each sort in the space the model ranks by themselves, and mostNear how many near good ones.
	mostAlone, mostNear = 5, 8
	// furtherDevice is the part by which a device more has to make the value by the model better, as in the rank of all sets.
	furtherDevice = 1.0 / 15
	// nearlyAsGood is up to how many times the value of the best choices by the model sets near them contend.
	nearlyAsGood = 1.05
)

// rankAlone ranks the first sets of each sort in a rank by themselves, and returns the others as they are: those like one of the first, and the hopeless ones last. A rank shares its effort
// between sets, so that most of them have cuts that were found on others. By itself a set has the effort that it has in the search of a part of the machine. Its own cuts count
// even where the joint rank has better ones: a set begins alike in both searches.
func (f *finder) rankAlone(ctx context.Context, ranked []space.Ranked, most int) (first, others []space.Ranked, err error) {
	least := math.Inf(1)
	for _, r := range ranked {
		least = min(least, r.Value)
	}
	var last []space.Ranked
	of, known := map[string]int{}, map[likeness]bool{}
	for _, r := range ranked {
		sort, alike := f.sort(r.Devices), f.likeness(r)
		switch {
		case r.Value >= hopeless*least:
			last = append(last, r)
		case of[sort] == most || known[alike]:
			others = append(others, r)
		default:
			first, known[alike] = append(first, r), true
			of[sort]++
		}
	}
	err = parallel.Do(ctx, len(first), func(i int) error {
		alone, err := f.space.Ranked(ctx, []string{first[i].Devices}, f.Aim, 1)
		if err == nil && len(alone) > 0 {
			first[i] = alone[0]
		}
		return err
	})
	if ctx.Err() != nil {
		err = nil
	}
	return first, append(others, last...), err
}

// rankedWithNear ranks sets alone, and then those near the two best ones: the space lists few numbers of units. They come first.
func (f *finder) rankedWithNear(ctx context.Context, ranked []space.Ranked) ([]space.Ranked, error) {
	first, others, err := f.rankAlone(ctx, ranked, mostAlone)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(first, func(a, b space.Ranked) int { return cmp.Compare(a.Value, b.Value) })
	var near []string
	for _, r := range first[:min(thorough, len(first))] {
		near = append(near, f.nearUnits(r.Devices)...)
		f.refined[r.Devices]++
	}
	near = slices.DeleteFunc(near, func(set string) bool {
		return slices.ContainsFunc(first, func(r space.Ranked) bool { return r.Devices == set })
	})
	slices.Sort(near)
	if near = slices.Compact(near); len(near) > 0 {
		f.readSets(near)
		if ranked, err = f.space.Ranked(ctx, near, f.Aim, f.rankEffort()); err == nil {
			ranked, _, err = f.rankAlone(ctx, ranked, mostNear)
		}
		if err != nil {
			return nil, err
		}
		first = append(first, ranked...)
	}
	return append(f.sortsFirst(first), others...), nil
}

// sortsFirst orders sets by their values, the best one of each sort first.
func (f *finder) sortsFirst(first []space.Ranked) []space.Ranked {
	weighed := func(r space.Ranked) float64 { return r.Value * (1 + furtherDevice*float64(len(f.sets[r.Devices]))) }
	slices.SortStableFunc(first, func(a, b space.Ranked) int { return cmp.Compare(weighed(a), weighed(b)) })
	var best, rest []space.Ranked
	seen := map[string]bool{}
	for _, r := range first {
		if sort := f.sort(r.Devices); seen[sort] {
			rest = append(rest, r)
		} else {
			seen[sort], best = true, append(best, r)
		}
	}
	return append(best, rest...)
}

// likeness tells choices apart by the model.
type likeness struct {
	value float64
	sort  string
}

// likeness of a choice: one on a set of another sort may leave devices without work by the model alone. A brief search does not try all sorts.
func (f *finder) likeness(r space.Ranked) likeness {
	if f.Brief {
		return likeness{value: r.Value}
	}
	return likeness{r.Value, f.sort(r.Devices)}
}

// sort tells sets apart of which the model and policies are wrong in unlike ways: by the groups of their devices, and of other devices than processors by their number in each, up to two. Local
// search gains unlike parts on them, too.
func (f *finder) sort(set string) string {
	if sort, known := f.sorts[set]; known {
		return sort
	}
	var all []string
	of := map[string]int{}
	for _, d := range f.sets[set] {
		group := fmt.Sprint(f.alike[d.Name], d.Kind)
		if of[group]++; of[group] == 1 || of[group] == 2 && !d.IsProcessor() {
			all = append(all, group)
		}
	}
	slices.Sort(all)
	f.sorts[set] = strings.Join(all, " ")
	return f.sorts[set]
}
