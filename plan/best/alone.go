package best

import (
	"cmp"
	"context"
	"slices"

	"dahl/parallel"
	"dahl/plan/space"
)

const (
	// mostAlone is how many sets of devices of the space the model ranks by themselves, and mostNear how many near good ones.
	mostAlone, mostNear = 8, 8
	// furtherDevice is the part by which a device more has to make the value by the model better, as in the rank of all sets.
	furtherDevice = 1.0 / 15
)

// rankAlone ranks the first sets of a rank by themselves, and orders them by that: the best one of each kind of set first. A rank shares its effort between sets, so that most of
// them have cuts that were found on others. By itself a set has the effort that it has in the search of a part of the machine.
func (f *finder) rankAlone(ctx context.Context, ranked []space.Ranked, most int) ([]space.Ranked, error) {
	first := slices.Clone(ranked[:min(most, len(ranked))])
	err := parallel.Do(ctx, len(first), func(i int) error {
		alone, err := f.space.Ranked(ctx, []string{first[i].Devices}, f.Aim)
		if err == nil && len(alone) > 0 && alone[0].Value < first[i].Value {
			first[i] = alone[0]
		}
		return err
	})
	if err != nil && ctx.Err() == nil {
		return nil, err
	}
	weighed := func(r space.Ranked) float64 { return r.Value * (1 + furtherDevice*float64(len(f.sets[r.Devices]))) }
	slices.SortStableFunc(first, func(a, b space.Ranked) int { return cmp.Compare(weighed(a), weighed(b)) })
	first = firstOfKinds(first, func(r space.Ranked) [2]int { return f.sets[r.Devices].sort() })
	return append(first, ranked[len(first):]...), nil
}

// sort tells sets apart of which the model and policies are wrong in unlike ways: whether it has processors, and how many other devices, up to two.
func (u units) sort() [2]int {
	processors, others := u.classes()
	return [2]int{min(processors, 1), min(others, 2)}
}

// firstOfKinds puts the first of each kind before the others.
func firstOfKinds[T any](list []T, kind func(T) [2]int) []T {
	var first, others []T
	seen := map[[2]int]bool{}
	for _, of := range list {
		if k := kind(of); seen[k] {
			others = append(others, of)
		} else {
			seen[k], first = true, append(first, of)
		}
	}
	return append(first, others...)
}
