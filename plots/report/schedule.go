package report

import (
	"cmp"
	"slices"
	"time"

	"dahl/plots"
	"dahl/schedule"
	"dahl/schedule/explain"
)

// encodeSchedule is what the page knows of one schedule.
func encodeSchedule(e *encoder, r *plots.Run, v *plots.View) map[string]any {
	s := r.Schedule
	starts := explain.NewStarts(r.Problem, s)
	return map[string]any{
		"world": s.World, "title": v.Title, "summary": v.Summary, "end": v.End, "makespan": s.Makespan, "period": s.Period,
		"steps":     e.deltas(len(v.StepEnds), func(i int) int64 { return int64(v.StepEnds[i]) }),
		"firstStep": max(1, r.FirstStep),
		"rows":      encodeRows(e, v.Rows),
		"spans":     encodeSpans(e, s, v, starts),
		"transfers": encodeTransfers(e, s, v, starts),
		"changes":   encodeChanges(e, r),
		"rests":     encodeRests(e, v.Rests),
		"path":      encodePath(e, v.Path),
		"longest":   longestWaits(r),
		"power":     encodePower(e, v.Power), "memories": encodeMemories(e, v.Memories), "clocks": encodeClocks(e, v.Clocks),
	}
}

func encodeRows(e *encoder, rows []plots.ViewRow) []map[string]any {
	list := []map[string]any{}
	for _, row := range rows {
		coarse := []map[string]any{}
		for _, c := range row.Coarse {
			runs := func(add func(int, func(int) int64) column, of func(*plots.ColumnRun) int) column {
				return add(len(c.Runs), func(i int) int64 { return int64(of(&c.Runs[i])) })
			}
			coarse = append(coarse, map[string]any{"n": c.Number,
				"first":    runs(e.deltas, func(x *plots.ColumnRun) int { return x.First }),
				"columns":  runs(e.ints, func(x *plots.ColumnRun) int { return x.End - x.First }),
				"category": runs(e.ints, func(x *plots.ColumnRun) int { return x.Category })})
		}
		list = append(list, map[string]any{"label": row.Label, "lanes": row.Lanes, "coarse": coarse})
	}
	return list
}

// before is what a span or a transfer waited for: numbers plus 1, so that 0 is nothing, and of what
// was busy the difference to the own number, so that it is small. A task is bound by a span, the arrival of a
// transfer, a change of its worker and the span before it there; a transfer by a span, a change of a
// link, and the transfers before it on its route and its copy engines. Of several changes the last
// to end counts.
type before struct {
	pred, arrival, change int64
	busy                  [3]int64
	last                  int64 // one of the places; 0: nothing bound it
}

// Places of what bounds a start, as the page has them.
const (
	placePred = 1 + iota
	placeArrival
	placeChange
	placeBusy // and those after it
)

func beforeOf(own int32, all []explain.Freed) (b before) {
	last, busy, changed := explain.LastFreed(all), 0, time.Duration(-1)
	for k, f := range all {
		place := int64(placePred)
		switch f.Bound {
		case explain.BoundPredecessor:
			b.pred = int64(f.By.Span) + 1
		case explain.BoundTransfer:
			place, b.arrival = placeArrival, int64(f.By.Transfer)+1
		case explain.BoundChange:
			if place = placeChange; f.At > changed {
				b.change, changed = int64(f.By.Change)+1, f.At
			}
		case explain.BoundBusy:
			place, b.busy[busy] = int64(placeBusy+busy), int64(own-max(f.By.Span, f.By.Transfer))
			busy++
		}
		if k == last {
			b.last = place
		}
	}
	return b
}

func encodeSpans(e *encoder, s *schedule.Schedule, v *plots.View, starts *explain.Starts) map[string]any {
	n := len(s.Spans)
	of := make([]before, n)
	for i := range of {
		of[i] = beforeOf(int32(i), starts.OfSpan(int32(i)))
	}
	columns := beforeColumns(e, of)
	col := func(at func(x *schedule.Span, m *plots.Mark) int64) column {
		return e.ints(n, func(i int) int64 { return at(&s.Spans[i], &v.Spans[i]) })
	}
	columns["start"] = e.deltas(n, func(i int) int64 { return int64(s.Spans[i].Start) })
	columns["length"] = col(func(x *schedule.Span, _ *plots.Mark) int64 { return int64(x.End - x.Start) })
	columns["task"] = e.deltas(n, func(i int) int64 { return int64(s.Spans[i].Task) })
	columns["step"] = e.deltas(n, func(i int) int64 { return int64(s.Spans[i].Step) })
	columns["worker"] = col(func(x *schedule.Span, _ *plots.Mark) int64 { return int64(x.Worker) })
	columns["row"] = col(func(_ *schedule.Span, m *plots.Mark) int64 { return int64(m.Row) })
	columns["lane"] = col(func(_ *schedule.Span, m *plots.Mark) int64 { return int64(m.Lane) })
	columns["category"] = col(func(_ *schedule.Span, m *plots.Mark) int64 { return int64(m.Category) })
	clocks := texts{at: map[string]int{"": 0}, list: []string{""}}
	columns["clock"] = col(func(_ *schedule.Span, m *plots.Mark) int64 { return clocks.number(m.Clock) })
	columns["clockNames"] = clocks.list
	return columns
}

func beforeColumns(e *encoder, of []before) map[string]any {
	col := func(at func(b *before) int64) column {
		return e.ints(len(of), func(i int) int64 { return at(&of[i]) })
	}
	return map[string]any{
		"last": col(func(b *before) int64 { return b.last }),
		"pred": e.deltas(len(of), func(i int) int64 { return of[i].pred }), "arrival": col(func(b *before) int64 { return b.arrival }),
		"change": col(func(b *before) int64 { return b.change }),
		"busy":   [3]column{col(func(b *before) int64 { return b.busy[0] }), col(func(b *before) int64 { return b.busy[1] }), col(func(b *before) int64 { return b.busy[2] })},
	}
}

func encodeTransfers(e *encoder, s *schedule.Schedule, v *plots.View, starts *explain.Starts) map[string]any {
	n := len(s.Transfers)
	of := make([]before, n)
	for i := range of {
		of[i] = beforeOf(int32(i), starts.OfTransfer(int32(i)))
	}
	columns := beforeColumns(e, of)
	col := func(at func(x *schedule.Transfer, m *plots.Mark) int64) column {
		return e.ints(n, func(i int) int64 { return at(&s.Transfers[i], &v.Transfers[i]) })
	}
	columns["start"] = e.deltas(n, func(i int) int64 { return int64(s.Transfers[i].Start) })
	columns["length"] = col(func(x *schedule.Transfer, _ *plots.Mark) int64 { return int64(x.End - x.Start) })
	columns["task"] = col(func(x *schedule.Transfer, _ *plots.Mark) int64 { return int64(x.For) })
	columns["step"] = e.deltas(n, func(i int) int64 { return int64(s.Transfers[i].Step) })
	columns["buffer"] = col(func(x *schedule.Transfer, _ *plots.Mark) int64 { return int64(x.Buffer) })
	columns["bytes"] = col(func(x *schedule.Transfer, _ *plots.Mark) int64 { return x.Bytes })
	columns["from"] = col(func(x *schedule.Transfer, _ *plots.Mark) int64 { return int64(x.From) })
	columns["to"] = col(func(x *schedule.Transfer, _ *plots.Mark) int64 { return int64(x.To) })
	columns["row"] = col(func(_ *schedule.Transfer, m *plots.Mark) int64 { return int64(m.Row) })
	columns["lane"] = col(func(_ *schedule.Transfer, m *plots.Mark) int64 { return int64(m.Lane) })
	columns["category"] = col(func(_ *schedule.Transfer, m *plots.Mark) int64 { return int64(m.Category) })
	reasons := texts{at: map[string]int{}}
	columns["reason"] = col(func(x *schedule.Transfer, _ *plots.Mark) int64 { return reasons.number(string(x.Reason)) })
	columns["reasons"] = reasons.list
	return columns
}

// encodeChanges has changes of state as text, since there are few kinds of them.
func encodeChanges(e *encoder, r *plots.Run) map[string]any {
	s := r.Schedule
	words := texts{at: map[string]int{}}
	n := len(s.Changes)
	return map[string]any{
		"text": e.ints(n, func(i int) int64 {
			c := &s.Changes[i]
			return words.number(c.Of(r.Problem.Platform) + ": " + c.Kind.String() + " " + c.StateName(r.Problem.Platform))
		}),
		"start": e.deltas(n, func(i int) int64 { return int64(s.Changes[i].Start) }),
		"end":   e.deltas(n, func(i int) int64 { return int64(s.Changes[i].End) }),
		"words": words.list,
	}
}

// encodeRests orders them so that neighbours lie beside each other.
func encodeRests(e *encoder, rests []plots.Rest) map[string]any {
	slices.SortStableFunc(rests, func(a, b plots.Rest) int {
		return cmp.Or(cmp.Compare(a.Row, b.Row), cmp.Compare(a.Lane, b.Lane), cmp.Compare(a.From, b.From))
	})
	words := texts{at: map[string]int{"": 0}, list: []string{""}}
	n := len(rests)
	col := func(at func(x *plots.Rest) int64) column {
		return e.ints(n, func(i int) int64 { return at(&rests[i]) })
	}
	return map[string]any{
		"row": col(func(x *plots.Rest) int64 { return int64(x.Row) }), "lane": col(func(x *plots.Rest) int64 { return int64(x.Lane) }),
		"category": col(func(x *plots.Rest) int64 { return int64(x.Category) }),
		"start":    e.deltas(n, func(i int) int64 { return int64(rests[i].From) }),
		"length":   col(func(x *plots.Rest) int64 { return int64(x.To - x.From) }),
		"text":     col(func(x *plots.Rest) int64 { return words.number(x.Text) }),
		"words":    words.list,
	}
}

// encodePath has the steps of the critical path: numbers of spans, transfers (1) or changes (2).
func encodePath(e *encoder, path []explain.PathStep) map[string]any {
	kind := func(x *explain.PathStep) (kind, number int64) {
		switch {
		case x.Span >= 0:
			return 0, int64(x.Span)
		case x.Transfer >= 0:
			return 1, int64(x.Transfer)
		}
		return 2, int64(x.Change)
	}
	return map[string]any{
		"kind":   e.ints(len(path), func(i int) int64 { k, _ := kind(&path[i]); return k }),
		"number": e.deltas(len(path), func(i int) int64 { _, n := kind(&path[i]); return n }),
		"wait":   e.ints(len(path), func(i int) int64 { return int64(path[i].Wait) }),
	}
}

// maxLongest bounds the list of the longest waits.
const maxLongest = 40

// longestWaits lists the gaps of workers by length, with the number of the span that ended each.
func longestWaits(r *plots.Run) []map[string]any {
	s := r.Schedule
	onWorker := make([][]int32, len(r.Problem.Platform.Workers))
	for i := range s.Spans {
		w := s.Spans[i].Worker
		onWorker[w] = append(onWorker[w], int32(i))
	}
	idles := slices.DeleteFunc(explain.Idles(r.Problem, s), func(x explain.Idle) bool { return x.Cause == explain.NoWork })
	slices.SortStableFunc(idles, func(a, b explain.Idle) int { return cmp.Compare(b.End-b.Start, a.End-a.Start) })
	list := []map[string]any{}
	for _, x := range idles[:min(len(idles), maxLongest)] {
		spans := onWorker[x.Worker]
		k, _ := slices.BinarySearchFunc(spans, x.End, func(i int32, at time.Duration) int { return cmp.Compare(s.Spans[i].Start, at) })
		list = append(list, map[string]any{"worker": x.Worker, "from": x.Start, "to": x.End, "cause": x.Cause.String(), "span": spans[k]})
	}
	return list
}

func encodeTimes(e *encoder, times []time.Duration) column {
	return e.deltas(len(times), func(i int) int64 { return int64(times[i]) })
}

func encodePower(e *encoder, p *plots.PowerCurves) map[string]any {
	if p == nil {
		return nil
	}
	watts := []column{}
	for _, list := range p.Watts {
		watts = append(watts, e.floats(list))
	}
	return map[string]any{"times": encodeTimes(e, p.Times), "names": p.Names, "watts": watts, "joules": e.floats(p.Joules), "grounds": p.Grounds, "mean": p.Mean}
}

func encodeMemories(e *encoder, all []plots.MemoryCurve) []map[string]any {
	list := []map[string]any{}
	for _, m := range all {
		list = append(list, map[string]any{"name": m.Name, "peak": m.Peak, "reserved": m.Reserved, "capacity": m.Capacity, "highest": m.Highest,
			"times": encodeTimes(e, m.Times), "bytes": e.ints(len(m.Bytes), func(i int) int64 { return int64(m.Bytes[i]) })})
	}
	return list
}

func encodeClocks(e *encoder, all []plots.ClockCurve) []map[string]any {
	list := []map[string]any{}
	for _, c := range all {
		list = append(list, map[string]any{"name": c.Name, "times": encodeTimes(e, c.Times), "scales": e.floats(c.Scales)})
	}
	return list
}
