package energy

import (
	"cmp"
	"slices"
	"time"
)

// interval is a time of use, from start until just before end.
type interval struct{ start, end time.Duration }

// sweep cuts [0, end) where intervals start or end. It visits the pieces in order, with the
// intervals that cover each: indices in order of start, valid during the call. Empty intervals
// cover nothing.
func sweep(in []interval, end time.Duration, visit func(from, to time.Duration, active []int32)) {
	order := make([]int32, 0, len(in))
	for i, v := range in {
		if v.end > v.start {
			order = append(order, int32(i))
		}
	}
	byStart := func(a, b int32) int { return cmp.Or(cmp.Compare(in[a].start, in[b].start), cmp.Compare(a, b)) }
	if !slices.IsSortedFunc(order, byStart) {
		slices.SortFunc(order, byStart)
	}
	var active []int32
	for now := time.Duration(0); now < end; {
		next, still := end, active[:0]
		for _, i := range active {
			if until := in[i].end; until > now {
				still, next = append(still, i), min(next, until)
			}
		}
		active = still
		for len(order) > 0 && in[order[0]].start <= now {
			active, next = append(active, order[0]), min(next, in[order[0]].end)
			order = order[1:]
		}
		if len(order) > 0 {
			next = min(next, in[order[0]].start)
		}
		visit(now, next, active)
		now = next
	}
}
