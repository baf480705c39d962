package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"dahl/platform"
	"dahl/schedule"
)

// wayComparison is what moves per step from one memory to another.
type wayComparison struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Count pair   `json:"copies_per_step"`
	Bytes pair   `json:"bytes_per_step"`
	Busy  pair   `json:"busy_s_per_step"` // the time that the copies take, added up
}

// copyComparison is the copies of one buffer that are of one size, on one way and for one
// reason.
type copyComparison struct {
	Buffer string          `json:"buffer"`
	From   string          `json:"from"`
	To     string          `json:"to"`
	Reason schedule.Reason `json:"reason"`
	Bytes  int64           `json:"bytes"` // of each
	Count  float64         `json:"count_per_step"`
	Median pair            `json:"median_s"` // predicted 0: a policy moved it in one world only
	MeanS  float64         `json:"measured_mean_s"`
	P95S   float64         `json:"measured_p95_s"`
	Share  float64         `json:"share"` // of the measured time of all copies
}

// movingOf are what the transfers of a schedule took, each told once.
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

// compareCopies compares what moved.
func (c *comparison) compareCopies(p *schedule.Problem, predicted, measured *schedule.Schedule) {
	c.compareWays(p, predicted, measured)
	expected, _ := copyTimes(p, predicted)
	times, total := copyTimes(p, measured)
	for kind, list := range times {
		kind.Count = float64(len(list)) / float64(measured.Steps)
		kind.Median = newPair(0, quantile(list, 0.5))
		if known := expected[kindOf(&kind)]; len(known) > 0 {
			kind.Median = newPair(quantile(known, 0.5), quantile(list, 0.5))
		}
		kind.P95S = quantile(list, 0.95)
		var sum float64
		for _, d := range list {
			sum += d
		}
		kind.MeanS, kind.Share = sum/float64(len(list)), ratio(sum, total)
		c.Copies = append(c.Copies, kind)
	}
	slices.SortFunc(c.Copies, func(a, b copyComparison) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), cmp.Compare(a.Buffer, b.Buffer), cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To),
			cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Bytes, b.Bytes))
	})
}

// kindOf is a comparison without its figures.
func kindOf(c *copyComparison) copyComparison {
	return copyComparison{Buffer: c.Buffer, From: c.From, To: c.To, Reason: c.Reason, Bytes: c.Bytes}
}

// copyTimes are the seconds that the copies of each kind took, sorted, and of all.
func copyTimes(p *schedule.Problem, s *schedule.Schedule) (times map[copyComparison][]float64, total float64) {
	times = map[copyComparison][]float64{}
	memories := p.Platform.Memories
	for i := range s.Transfers {
		t := &s.Transfers[i]
		kind := copyComparison{Buffer: p.Graph.Buffers[t.Buffer].Name, From: memories[t.From].Name, To: memories[t.To].Name, Reason: t.Reason, Bytes: t.Bytes}
		d := (t.End - t.Start).Seconds()
		times[kind] = append(times[kind], d)
		total += d
	}
	for _, list := range times {
		slices.Sort(list)
	}
	return times, total
}

// compareWays adds up what moves between each two memories, what moves before the first
// step left out: a longer run has it only once.
func (c *comparison) compareWays(p *schedule.Problem, predicted, measured *schedule.Schedule) {
	type way struct{ from, to platform.MemoryID }
	ways := map[way]*[2]wayTotal{}
	for world, s := range []*schedule.Schedule{predicted, measured} {
		for i := range s.Transfers {
			t := &s.Transfers[i]
			if t.Reason == schedule.ReasonEnter {
				continue
			}
			if ways[way{t.From, t.To}] == nil {
				ways[way{t.From, t.To}] = &[2]wayTotal{}
			}
			sum := &ways[way{t.From, t.To}][world]
			sum.count += 1 / float64(s.Steps)
			sum.bytes += float64(t.Bytes) / float64(s.Steps)
			sum.seconds += (t.End - t.Start).Seconds() / float64(s.Steps)
		}
	}
	inOrder := slices.SortedFunc(maps.Keys(ways), func(a, b way) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) })
	for _, w := range inOrder {
		sums := ways[w]
		c.Ways = append(c.Ways, wayComparison{p.Platform.Memories[w.from].Name, p.Platform.Memories[w.to].Name,
			newPair(sums[0].count, sums[1].count), newPair(sums[0].bytes, sums[1].bytes), newPair(sums[0].seconds, sums[1].seconds)})
	}
}

// wayTotal is what moves on a way in a step.
type wayTotal struct{ count, bytes, seconds float64 }

// maxCopyRows bounds the lines of copies that are printed; --json has all.
const maxCopyRows = 40

// printCopies writes what moves as tables.
func (c *comparison) printCopies(w io.Writer) {
	if len(c.Copies) == 0 {
		return
	}
	showTime := func(s float64) string { return shortTime(seconds(s)) }
	fmt.Fprintf(w, "\n%-32s %-16s %-9s %9s %7s %11s %11s %11s %9s %6s\n", "copy of", "from to", "reason", "bytes", "n", "predicted", "median", "p95", "error", "share")
	for i, k := range c.Copies {
		if i == maxCopyRows {
			fmt.Fprintf(w, "and %d more\n", len(c.Copies)-i)
			break
		}
		predicted, off := "-", "-"
		if k.Median.Predicted > 0 {
			predicted, off = showTime(k.Median.Predicted), fmt.Sprintf("%+.1f%%", k.Median.ErrorPercent)
		}
		fmt.Fprintf(w, "%-32s %-16s %-9s %9s %7.3g %11s %11s %11s %9s %5.1f%%\n", k.Buffer, k.From+" "+k.To, k.Reason, shortBytes(k.Bytes), k.Count,
			predicted, showTime(k.Median.Measured), showTime(k.P95S), off, 100*k.Share)
	}
	for _, way := range c.Ways {
		fmt.Fprintf(w, "%s to %s per step: predicted %.4g copies of %s, measured %.4g of %s\n", way.From, way.To,
			way.Count.Predicted, shortBytes(int64(way.Bytes.Predicted)), way.Count.Measured, shortBytes(int64(way.Bytes.Measured)))
	}
}
