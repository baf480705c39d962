package schedule

import (
	"cmp"
	"math"
	"slices"
	"time"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule/ready"
)

// Complete sorts the spans, transfers and evictions of a run and derives the rest from
// them: makespan, first step, period, occupancy and peaks. Both worlds call it.
// It fails when a buffer's home is not a memory of the platform.
func (s *Schedule) Complete(p *Problem) error {
	s.completeTimes(p)
	return s.setMemory(p)
}

// completeTimes is Complete without the contents of memories.
func (s *Schedule) completeTimes(p *Problem) {
	bySpan := func(a, b Span) int { return a.Compare(&b) }
	if !slices.IsSortedFunc(s.Spans, bySpan) {
		slices.SortStableFunc(s.Spans, bySpan) // tasks of no duration keep their worker's order
	}
	byTransfer := func(a, b Transfer) int {
		if a.Start != b.Start {
			return cmp.Compare(a.Start, b.Start)
		}
		return cmp.Or(cmp.Compare(a.To, b.To), cmp.Compare(a.From, b.From), cmp.Compare(a.End, b.End),
			cmp.Compare(a.Step, b.Step), cmp.Compare(p.Graph.Rank(a.For), p.Graph.Rank(b.For)), cmp.Compare(p.Graph.Buffers[a.Buffer].Name, p.Graph.Buffers[b.Buffer].Name))
	}
	if !slices.IsSortedFunc(s.Transfers, byTransfer) {
		slices.SortStableFunc(s.Transfers, byTransfer)
	}
	slices.SortStableFunc(s.Evictions, func(a, b Eviction) int { return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Memory, b.Memory)) })
	sortChanges(s.Changes)
	s.setTimes(p)
}

// setTimes derives makespan, first step and period.
func (s *Schedule) setTimes(p *Problem) {
	s.Makespan, s.FirstStep = 0, 0
	for i := range s.Spans {
		span := &s.Spans[i]
		s.Makespan = max(s.Makespan, span.End)
		if span.Step == 0 {
			s.FirstStep = max(s.FirstStep, span.End)
		}
	}
	s.Period = s.period(p)
}

// period is the time that a step more takes in a long run: the mean distance of the ends of rounds, over the later half of those
// with all tasks, where the start of the run no longer shows. A round is a step, and where tasks of a plan lag behind, the tasks between two
// beginnings of its lists. The period is no shorter than what a worker of a plan has to do in these rounds: one may have
// done some of it ahead, while others caught up. A run without such rounds has the mean of all that it took.
func (s *Schedule) period(p *Problem) time.Duration {
	last, first, lags := s.Steps-1, 0, []int32(nil)
	if p.Plan != nil && p.Plan.Lags != nil {
		lags, first = p.Plan.Lags, int(slices.Max(p.Plan.Lags))
	}
	switch {
	case last == 0:
		return 0
	case last <= first:
		return s.Makespan / time.Duration(s.Steps)
	}
	half := first + (last-first)/2
	var begin, end, most time.Duration
	work := make([]time.Duration, len(p.Platform.Workers))
	for i := range s.Spans {
		span := &s.Spans[i]
		round := int(span.Step)
		if lags != nil {
			round += int(lags[span.Task])
		}
		if round > last {
			continue
		}
		if end = max(end, span.End); round <= half {
			begin = max(begin, span.End)
		} else {
			work[span.Worker] += span.End - span.Start
		}
	}
	if p.Plan != nil {
		most = slices.Max(work)
	}
	return max(end-begin, most) / time.Duration(last-half)
}

// moment is an event that changes the live bytes. At one time, ends come first, then evictions,
// then tasks of no duration, then transfers of contents written by then, and then starts.
type moment struct {
	at    time.Duration
	kind  momentKind
	index int32 // of the span, transfer or eviction
}

type momentKind uint8

const (
	spanEnds momentKind = iota
	evicts
	spanPasses
	transferStarts
	spanStarts
)

// before orders moments. Tasks of no duration at one time follow each other by step
// and program order, which every dependence obeys.
func (s *Schedule) before(a, b moment) int {
	if a.at == b.at && a.kind == spanPasses && b.kind == spanPasses {
		x, y := &s.Spans[a.index], &s.Spans[b.index]
		return cmp.Or(cmp.Compare(x.Step, y.Step), cmp.Compare(x.Task, y.Task))
	}
	return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.kind, b.kind), cmp.Compare(a.index, b.index))
}

// eachMoment visits the events of a schedule in order. Spans, transfers and evictions are sorted
// by start already, so only the few that overlap have to be sorted by their ends.
func (s *Schedule) eachMoment(visit func(moment)) {
	var open ready.Heap[openSpan]
	endUntil := func(at time.Duration) {
		for len(open) > 0 && open[0].end <= at {
			span := open.Pop()
			visit(moment{span.end, spanEnds, span.index})
		}
	}
	var now []moment // of one time, without ends
	span, transfer, eviction := 0, 0, 0
	for span < len(s.Spans) || transfer < len(s.Transfers) || eviction < len(s.Evictions) {
		at := time.Duration(math.MaxInt64)
		if span < len(s.Spans) {
			at = s.Spans[span].Start
		}
		if transfer < len(s.Transfers) {
			at = min(at, s.Transfers[transfer].Start)
		}
		if eviction < len(s.Evictions) {
			at = min(at, s.Evictions[eviction].At)
		}
		endUntil(at)
		now = now[:0]
		for ; eviction < len(s.Evictions) && s.Evictions[eviction].At == at; eviction++ {
			now = append(now, moment{at, evicts, int32(eviction)})
		}
		for ; transfer < len(s.Transfers) && s.Transfers[transfer].Start == at; transfer++ {
			now = append(now, moment{at, transferStarts, int32(transfer)})
		}
		for ; span < len(s.Spans) && s.Spans[span].Start == at; span++ {
			if s.Spans[span].End == at {
				now = append(now, moment{at, spanPasses, int32(span)})
				continue
			}
			now = append(now, moment{at, spanStarts, int32(span)})
			open.Push(openSpan{s.Spans[span].End, int32(span)})
		}
		slices.SortFunc(now, s.before)
		for _, m := range now {
			visit(m)
		}
	}
	endUntil(math.MaxInt64)
}

// openSpan is a span in progress.
type openSpan struct {
	end   time.Duration
	index int32
}

// Before orders spans by their ends.
func (a openSpan) Before(b openSpan) bool {
	return a.end < b.end || a.end == b.end && a.index < b.index
}

// setMemory derives the bytes live in each memory after all events of a time. An atom becomes live at the start of
// its write or of its transfer. It stays live until
// the end of its last use in the step, until a kernel starts to write it elsewhere, or until it
// is evicted. A storage that keeps its contents from step to step stays.
func (s *Schedule) setMemory(p *Problem) error {
	r, err := newResidency(p, s.usedInHosts(p))
	if err != nil {
		return err
	}
	memories := len(p.Platform.Memories)
	s.PeakBytes = make([]int64, memories)
	last := make([]int64, memories)
	for m := range last {
		r.counted = append(r.counted, platform.MemoryID(m))
	}
	const most = 1 << 13 // in one list: it is not copied again when there are more
	lists := make([][]Occupancy, 1)
	record := func(at time.Duration) {
		slices.Sort(r.counted)
		for _, m := range r.counted {
			if bytes := r.live[m]; bytes != last[m] || at < 0 {
				last[m] = bytes
				s.PeakBytes[m] = max(s.PeakBytes[m], bytes)
				if len(lists[len(lists)-1]) == most {
					lists = append(lists, make([]Occupancy, 0, most))
				}
				now := &lists[len(lists)-1]
				*now = append(*now, Occupancy{m, max(at, 0), bytes})
			}
		}
		r.counted = r.counted[:0]
	}
	at := time.Duration(-1) // of the moments that are not recorded; negative: before the first
	s.eachMoment(func(m moment) {
		if m.at > max(at, 0) {
			record(at)
		}
		at = m.at
		s.pass(p, r, m)
	})
	record(at)
	s.Memory = slices.Concat(lists...)
	return nil
}

// usedInHosts tells which storages a schedule uses in the host memory of a node, or takes from there.
func (s *Schedule) usedInHosts(p *Problem) func(dag.BufferID, platform.MemoryID) bool {
	if len(p.Platform.Nodes) == 0 {
		return func(dag.BufferID, platform.MemoryID) bool { return true }
	}
	used := p.Platform.NewFewSets(len(p.Graph.Buffers))
	for i := range s.Spans {
		if m := p.Platform.MemoryOf(s.Spans[i].Worker); p.Platform.IsHost(m) {
			for _, a := range p.Graph.Covers(s.Spans[i].Task) {
				used.Add(int32(a.Storage), m)
			}
		}
	}
	for i := range s.Transfers {
		if t := &s.Transfers[i]; len(t.Atoms) > 0 && p.Platform.IsHost(t.From) {
			used.Add(int32(p.Graph.AtomStorage(dag.AtomID(t.Atoms[0]))), t.From)
		}
	}
	return func(b dag.BufferID, m platform.MemoryID) bool { return used.Has(int32(b), m) }
}

// pass applies a moment to the residency.
func (s *Schedule) pass(p *Problem, r *residency, m moment) {
	switch m.kind {
	case transferStarts:
		t := &s.Transfers[m.index]
		for _, a := range t.Atoms {
			r.displace(a, t.Step, t.To)
			if is := r.versionOf(a, t.Step); !r.valid.Has(is, t.To) {
				r.valid.Add(is, t.To)
				r.take(a, t.To)
			}
		}
		return
	case evicts:
		e := &s.Evictions[m.index]
		for _, a := range e.Atoms {
			r.leave(a, e.Memory)
		}
		return
	}
	span := &s.Spans[m.index]
	i := dag.Instance{Task: span.Task, Step: span.Step}
	if m.kind != spanEnds {
		r.occupy(i, p.Platform.MemoryOf(span.Worker))
	}
	if m.kind != spanStarts {
		r.end(i)
	}
}
