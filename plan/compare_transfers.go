package plan

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/place"
	"dahl/stats"
)

// WayComparison compares the transfers of a step from one memory to another.
type WayComparison struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Count Pair   `json:"copies_per_step"`
	Bytes Pair   `json:"bytes_per_step"`
	Busy  Pair   `json:"busy_s_per_step"` // the time that the copies take, added up
}

// TransferComparison compares the copies of one buffer of one size, on one way and for one reason.
type TransferComparison struct {
	Buffer string       `json:"buffer"`
	From   string       `json:"from"`
	To     string       `json:"to"`
	Reason place.Reason `json:"reason"`
	Bytes  int64        `json:"bytes"` // of each
	Count  float64      `json:"count_per_step"`
	Median Pair         `json:"median_s"` // predicted 0 means a policy moved it in one world only
	MeanS  float64      `json:"measured_mean_s"`
	P95S   float64      `json:"measured_p95_s"`
	Share  float64      `json:"share"` // of the measured time of all copies
}

// movingOf returns the times of a schedule's transfers, each once.
func movingOf(s *schedule.Schedule) func(*schedule.Transfer) (time.Duration, bool) {
	took := map[schedule.TransferKey][]time.Duration{} // by start
	for i := range s.Transfers {
		t := &s.Transfers[i]
		took[t.Key()] = append(took[t.Key()], t.End-t.Start)
	}
	return func(t *schedule.Transfer) (time.Duration, bool) {
		key := t.Key()
		list := took[key]
		if len(list) == 0 {
			return 0, false
		}
		took[key] = list[1:]
		return list[0], true
	}
}

// compareTransfers compares what moved, by buffer, way, reason and size: rows without figures yet.
func (c *Comparison) compareTransfers(p *schedule.Problem, predicted, measured *schedule.Schedule) {
	of := func(t *schedule.Transfer) (TransferComparison, time.Duration) {
		from, to := p.Platform.Memories[t.From].Name, p.Platform.Memories[t.To].Name
		return TransferComparison{Buffer: p.Graph.Buffers[t.Buffer].Name, From: from, To: to, Reason: t.Reason, Bytes: t.Bytes}, t.End - t.Start
	}
	expected, _ := TimesOf(predicted.Transfers, of)
	times, all := TimesOf(measured.Transfers, of)
	for row, list := range times {
		known, sum := expected[row], Total(list)
		row.Median = NewPair(0, stats.Median(list))
		if len(known) > 0 {
			row.Median = NewPair(stats.Median(known), row.Median.Measured)
		}
		row.Count, row.MeanS, row.P95S = float64(len(list))/float64(measured.Steps), sum/float64(len(list)), stats.Quantile(list, 0.95)
		row.Share = sum / cmp.Or(all, 1)
		c.Copies = append(c.Copies, row)
	}
	slices.SortFunc(c.Copies, func(a, b TransferComparison) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), cmp.Compare(a.Buffer, b.Buffer), cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To),
			cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Bytes, b.Bytes))
	})
}

// compareWays adds up the transfers between each two memories, except transfers before the first step: a longer run has it only once.
func (c *Comparison) compareWays(p *schedule.Problem, predicted, measured *schedule.Schedule) {
	type way struct{ from, to platform.MemoryID }
	type sums struct{ count, bytes, seconds float64 } // of a step
	ways := map[way][2]sums{}                         // predicted and measured
	for world, s := range []*schedule.Schedule{predicted, measured} {
		for i := range s.Transfers {
			t := &s.Transfers[i]
			if t.Reason == place.ReasonEnter {
				continue
			}
			both := ways[way{t.From, t.To}]
			both[world].count += 1 / float64(s.Steps)
			both[world].bytes += float64(t.Bytes) / float64(s.Steps)
			both[world].seconds += (t.End - t.Start).Seconds() / float64(s.Steps)
			ways[way{t.From, t.To}] = both
		}
	}
	inOrder := slices.SortedFunc(maps.Keys(ways), func(a, b way) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) })
	for _, w := range inOrder {
		one, other := ways[w][0], ways[w][1]
		c.Ways = append(c.Ways, WayComparison{p.Platform.Memories[w.from].Name, p.Platform.Memories[w.to].Name,
			NewPair(one.count, other.count), NewPair(one.bytes, other.bytes), NewPair(one.seconds, other.seconds)})
	}
}
