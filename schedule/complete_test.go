package schedule

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"dahl/dag"
	"dahl/platform"
)

// TestMomentsAreInOrder compares with sorting all moments, for random spans and
// transfers in few distinct times, so that many begin, end and pass at one.
func TestMomentsAreInOrder(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 11))
		s := &Schedule{}
		for i := range rng.IntN(40) {
			start := time.Duration(rng.IntN(12))
			s.Spans = append(s.Spans, Span{Task: dag.TaskID(rng.IntN(20)), Step: int32(rng.IntN(3)),
				Worker: platform.WorkerID(i % 5), Start: start, End: start + time.Duration(rng.IntN(4))})
		}
		for range rng.IntN(9) {
			s.Transfers = append(s.Transfers, Transfer{Start: time.Duration(rng.IntN(12))})
		}
		slices.SortFunc(s.Spans, func(a, b Span) int { return int(a.Start - b.Start) })
		slices.SortFunc(s.Transfers, func(a, b Transfer) int { return int(a.Start - b.Start) })
		var want []moment
		for i, span := range s.Spans {
			if span.Start == span.End {
				want = append(want, moment{span.Start, spanPasses, int32(i)})
			} else {
				want = append(want, moment{span.Start, spanStarts, int32(i)}, moment{span.End, spanEnds, int32(i)})
			}
		}
		for i := range s.Transfers {
			want = append(want, moment{s.Transfers[i].Start, transferStarts, int32(i)})
		}
		slices.SortFunc(want, s.before)
		var got []moment
		s.eachMoment(func(m moment) { got = append(got, m) })
		if len(got) != len(want) {
			t.Fatalf("seed %d: %d moments, not %d", seed, len(got), len(want))
		}
		for i := range got {
			if s.before(got[i], want[i]) != 0 {
				t.Fatalf("seed %d: moment %d is %v, not %v", seed, i, got[i], want[i])
			}
		}
	}
}
