package report

import (
	"cmp"
	"slices"
	"time"

	"dahl/dag"
	"dahl/platform"
	"dahl/plots"
	"dahl/schedule"
	"dahl/schedule/explain"
)

// scheduled is a schedule that is being written. Its spans are ordered by worker and start, whatever their order in a file, and its transfers
// by memories, so that neighbours resemble each other and the step before.
type scheduled struct {
	*schedule.Schedule
	e      *encoder
	run    *plots.Run
	view   *plots.View
	starts *explain.Starts

	spans, transfers           []int32 // in the order in which they are written
	spanNumber, transferNumber []int64 // of each, there
}

func newScheduled(e *encoder, r *plots.Run, v *plots.View) *scheduled {
	s := &scheduled{Schedule: r.Schedule, e: e, run: r, view: v, starts: explain.NewStarts(r.Problem, r.Schedule)}
	s.spans, s.spanNumber = ordered(len(s.Spans), func(a, b int32) int {
		x, y := &s.Spans[a], &s.Spans[b]
		return cmp.Or(cmp.Compare(x.Worker, y.Worker), cmp.Compare(x.Start, y.Start))
	})
	s.transfers, s.transferNumber = ordered(len(s.Transfers), func(a, b int32) int {
		x, y := &s.Transfers[a], &s.Transfers[b]
		return cmp.Or(cmp.Compare(x.From, y.From), cmp.Compare(x.To, y.To))
	})
	return s
}

// ordered sorts numbers, of equal ones the smaller first, and says where each went.
func ordered(n int, compare func(a, b int32) int) (order []int32, number []int64) {
	for i := range n {
		order = append(order, int32(i))
	}
	slices.SortStableFunc(order, compare)
	number = make([]int64, n)
	for k, i := range order {
		number[i] = int64(k)
	}
	return order, number
}

// encodeSchedule makes the data of one schedule for the page.
func encodeSchedule(e *encoder, r *plots.Run, v *plots.View) map[string]any {
	s := newScheduled(e, r, v)
	return map[string]any{
		"world": s.World, "title": v.Title, "summary": v.Summary, "end": v.End, "makespan": s.Makespan, "period": s.Period,
		"steps":     e.deltas(len(v.StepEnds), func(i int) int64 { return int64(v.StepEnds[i]) }),
		"firstStep": max(1, r.FirstStep),
		"steady":    [2]int{v.Steady.First, v.Steady.Last},
		"rows":      encodeRows(e, v.Rows),
		"spans":     s.encodeSpans(),
		"transfers": s.encodeTransfers(),
		"changes":   encodeChanges(e, r),
		"rests":     encodeRests(e, v.Rests),
		"path":      s.encodePath(),
		"longest":   s.longestWaits(),
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
		list = append(list, map[string]any{"node": row.Node, "head": row.Head, "label": row.Label, "lanes": row.Lanes, "alone": row.Alone, "coarse": coarse})
	}
	return list
}

// before lists the events that a span or a transfer waited for. A task is bound by a predecessor, the
// arrival of a transfer, a change of its worker and the span before it there; a transfer by a
// predecessor of its task, a change of a link, and the transfers before it on its route and its copy
// engines. Of several changes the last to end counts.
type before struct {
	// The predecessor by its steps back, plus 1, and by how much smaller its task is; 0 means none.
	stepsBack, tasksBack int64
	arrival, change      int64    // numbers plus 1; 0 means none
	busy                 [3]int64 // differences to the own number; 0 means none
	last                 int64    // one of the places; 0 means that nothing bound it
}

// Places of what bounds a start, as the page has them.
const (
	placePred = 1 + iota
	placeArrival
	placeChange
	placeBusy // and those after it
)

// beforeOf sorts the events before the span or the transfer with a number. A transfer is for a
// task.
func (s *scheduled) beforeOf(own int64, task dag.TaskID, step int32, all []explain.Freed) (b before) {
	last, busy, changed := explain.LastFreed(all), 0, time.Duration(-1)
	for k, f := range all {
		place := int64(placePred)
		switch f.Bound {
		case explain.BoundPredecessor:
			by := &s.Spans[f.By.Span]
			b.stepsBack, b.tasksBack = int64(step-by.Step)+1, int64(task-by.Task)
		case explain.BoundTransfer:
			place, b.arrival = placeArrival, s.transferNumber[f.By.Transfer]+1
		case explain.BoundChange:
			if place = placeChange; f.At > changed {
				b.change, changed = int64(f.By.Change)+1, f.At
			}
		case explain.BoundBusy:
			by := int64(0)
			if f.By.Span >= 0 {
				by = s.spanNumber[f.By.Span]
			} else {
				by = s.transferNumber[f.By.Transfer]
			}
			place, b.busy[busy] = int64(placeBusy+busy), own-by
			busy++
		}
		if k == last {
			b.last = place
		}
	}
	return b
}

func (s *scheduled) beforeColumns(of []before) map[string]any {
	col := func(at func(b *before) int64) column {
		return s.e.ints(len(of), func(i int) int64 { return at(&of[i]) })
	}
	return map[string]any{
		"last":      col(func(b *before) int64 { return b.last }),
		"stepsBack": col(func(b *before) int64 { return b.stepsBack }), "tasksBack": col(func(b *before) int64 { return b.tasksBack }),
		"arrival": s.e.deltas(len(of), func(i int) int64 { return of[i].arrival }),
		"change":  col(func(b *before) int64 { return b.change }),
		"busy":    [3]column{col(func(b *before) int64 { return b.busy[0] }), col(func(b *before) int64 { return b.busy[1] }), col(func(b *before) int64 { return b.busy[2] })},
	}
}

// markColumns adds where marks are drawn.
func (s *scheduled) markColumns(columns map[string]any, order []int32, marks []plots.Mark) {
	col := func(at func(m *plots.Mark) int64) column {
		return s.e.ints(len(order), func(k int) int64 { return at(&marks[order[k]]) })
	}
	columns["row"] = col(func(m *plots.Mark) int64 { return int64(m.Row) })
	columns["lane"] = col(func(m *plots.Mark) int64 { return int64(m.Lane) })
	columns["category"] = col(func(m *plots.Mark) int64 { return int64(m.Category) })
}

// timeColumns adds starts, as gaps behind the ends of those before, and lengths.
func (s *scheduled) timeColumns(columns map[string]any, n int, times func(k int) (start, end time.Duration)) {
	ended := time.Duration(0)
	columns["gap"] = s.e.ints(n, func(k int) int64 {
		start, end := times(k)
		gap := start - ended
		ended = end
		return int64(gap)
	})
	columns["length"] = s.e.ints(n, func(k int) int64 {
		start, end := times(k)
		return int64(end - start)
	})
}

func (s *scheduled) encodeSpans() map[string]any {
	n := len(s.spans)
	of := make([]before, n)
	for k, i := range s.spans {
		of[k] = s.beforeOf(int64(k), s.Spans[i].Task, s.Spans[i].Step, s.starts.OfSpan(i))
	}
	columns := s.beforeColumns(of)
	s.markColumns(columns, s.spans, s.view.Spans)
	s.timeColumns(columns, n, func(k int) (start, end time.Duration) { x := &s.Spans[s.spans[k]]; return x.Start, x.End })
	columns["task"] = s.e.deltas(n, func(k int) int64 { return int64(s.Spans[s.spans[k]].Task) })
	columns["step"] = s.e.deltas(n, func(k int) int64 { return int64(s.Spans[s.spans[k]].Step) })
	columns["worker"] = s.e.deltas(n, func(k int) int64 { return int64(s.Spans[s.spans[k]].Worker) })
	clocks := texts{at: map[string]int{"": 0}, list: []string{""}}
	columns["clock"] = s.e.ints(n, func(k int) int64 { return clocks.number(s.view.Spans[s.spans[k]].Clock) })
	columns["clockNames"] = clocks.list
	return columns
}

func (s *scheduled) encodeTransfers() map[string]any {
	n := len(s.transfers)
	of := make([]before, n)
	for k, i := range s.transfers {
		of[k] = s.beforeOf(int64(k), s.Transfers[i].For, s.Transfers[i].Step, s.starts.OfTransfer(i))
	}
	columns := s.beforeColumns(of)
	s.markColumns(columns, s.transfers, s.view.Transfers)
	s.timeColumns(columns, n, func(k int) (start, end time.Duration) {
		x := &s.Transfers[s.transfers[k]]
		return x.Start, x.End
	})
	col := func(add func(int, func(int) int64) column, at func(x *schedule.Transfer) int64) column {
		return add(n, func(k int) int64 { return at(&s.Transfers[s.transfers[k]]) })
	}
	reasons := texts{at: map[string]int{}}
	columns["task"] = col(s.e.deltas, func(x *schedule.Transfer) int64 { return int64(x.For) })
	columns["step"] = col(s.e.deltas, func(x *schedule.Transfer) int64 { return int64(x.Step) })
	columns["buffer"] = col(s.e.ints, func(x *schedule.Transfer) int64 { return int64(x.Buffer) })
	columns["bytes"] = col(s.e.ints, func(x *schedule.Transfer) int64 { return x.Bytes })
	columns["from"] = col(s.e.ints, func(x *schedule.Transfer) int64 { return int64(x.From) })
	columns["to"] = col(s.e.ints, func(x *schedule.Transfer) int64 { return int64(x.To) })
	columns["reason"] = col(s.e.ints, func(x *schedule.Transfer) int64 { return reasons.number(string(x.Reason)) })
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

// encodeRests orders rests by row, lane and time.
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
func (s *scheduled) encodePath() map[string]any {
	path := s.view.Path
	number := func(x *explain.PathStep) (kind, number int64) {
		switch {
		case x.Span >= 0:
			return 0, s.spanNumber[x.Span]
		case x.Transfer >= 0:
			return 1, s.transferNumber[x.Transfer]
		}
		return 2, int64(x.Change)
	}
	return map[string]any{
		"kind":   s.e.ints(len(path), func(i int) int64 { kind, _ := number(&path[i]); return kind }),
		"number": s.e.deltas(len(path), func(i int) int64 { _, n := number(&path[i]); return n }),
	}
}

// maxLongest bounds the list of the longest waits.
const maxLongest = 30

// longestWaits lists the longest gaps of workers, with the number of the span after each. Of the
// gaps before one task on one worker in all steps it lists the longest.
func (s *scheduled) longestWaits() []map[string]any {
	type waiting struct {
		worker platform.WorkerID
		task   dag.TaskID
	}
	onWorker := make([][]int32, len(s.run.Problem.Platform.Workers)) // spans by worker
	for _, i := range s.spans {
		w := s.Spans[i].Worker
		onWorker[w] = append(onWorker[w], i)
	}
	idles := slices.DeleteFunc(explain.Idles(s.run.Problem, s.Schedule), func(x explain.Idle) bool { return x.Cause == explain.NoWork })
	slices.SortStableFunc(idles, func(a, b explain.Idle) int { return cmp.Compare(b.End-b.Start, a.End-a.Start) })
	list, listed := []map[string]any{}, map[waiting]bool{}
	for _, x := range idles {
		on := onWorker[x.Worker]
		k, _ := slices.BinarySearchFunc(on, x.End, func(i int32, at time.Duration) int { return cmp.Compare(s.Spans[i].Start, at) })
		of := waiting{x.Worker, s.Spans[on[k]].Task}
		if len(list) == maxLongest || listed[of] {
			continue
		}
		listed[of] = true
		list = append(list, map[string]any{"worker": x.Worker, "from": x.Start, "to": x.End, "cause": x.Cause.String(), "span": s.spanNumber[on[k]]})
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
