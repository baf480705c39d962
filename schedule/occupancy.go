package schedule

import (
	"cmp"
	"slices"
	"time"

	"dahl/dag"
	"dahl/platform"
)

// moment is something in a schedule that changes what is live. At one time, ends
// come before tasks of no duration, those before transfers, which move what had
// been written by then, and those before starts.
type moment struct {
	at    time.Duration
	kind  momentKind
	index int32 // of the span or transfer
}

type momentKind uint8

const (
	spanEnds momentKind = iota
	spanPasses
	transferStarts
	spanStarts
)

// moments lists what happened in a schedule, in order. Tasks of no duration at
// one time follow each other by step and program order, which every dependence
// obeys.
func (s *Schedule) moments() []moment {
	ms := make([]moment, 0, 2*len(s.Spans)+len(s.Transfers))
	for i := range s.Spans {
		if span := &s.Spans[i]; span.Start == span.End {
			ms = append(ms, moment{span.Start, spanPasses, int32(i)})
		} else {
			ms = append(ms, moment{span.Start, spanStarts, int32(i)}, moment{span.End, spanEnds, int32(i)})
		}
	}
	for i := range s.Transfers {
		ms = append(ms, moment{s.Transfers[i].Start, transferStarts, int32(i)})
	}
	slices.SortFunc(ms, func(a, b moment) int {
		if a.at == b.at && a.kind == spanPasses && b.kind == spanPasses {
			x, y := &s.Spans[a.index], &s.Spans[b.index]
			return cmp.Or(cmp.Compare(x.Step, y.Step), cmp.Compare(x.Task, y.Task))
		}
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.kind, b.kind), cmp.Compare(a.index, b.index))
	})
	return ms
}

// setMemory derives the bytes live in each memory after everything that happens
// at a time. An atom is live in a memory from the start of the kernel that writes
// it or of the transfer that brings it, until the end of its last use in the
// step, or until a kernel starts to write it elsewhere; a storage that keeps its
// contents from step to step stays.
func (s *Schedule) setMemory(p *Problem) error {
	r, err := newResidency(p)
	if err != nil {
		return err
	}
	memories := len(p.Platform.Memories)
	s.PeakBytes, s.Memory = make([]int64, memories), nil
	last := make([]int64, memories)
	record := func(at time.Duration) {
		for m, bytes := range r.live {
			if bytes != last[m] || at < 0 {
				last[m] = bytes
				s.PeakBytes[m] = max(s.PeakBytes[m], bytes)
				s.Memory = append(s.Memory, Occupancy{platform.MemoryID(m), max(at, 0), bytes})
			}
		}
	}
	ms := s.moments()
	if len(ms) == 0 || ms[0].at > 0 {
		record(-1)
	}
	for i, m := range ms {
		s.pass(p, r, m)
		if i+1 == len(ms) || ms[i+1].at > m.at {
			record(m.at)
		}
	}
	return nil
}

// pass applies one moment to the state of residency.
func (s *Schedule) pass(p *Problem, r *residency, m moment) {
	if m.kind == transferStarts {
		t := &s.Transfers[m.index]
		for _, a := range t.Atoms {
			if set := uint64(1) << t.To; r.valid[a]&set == 0 {
				r.valid[a] |= set
				r.live[t.To] += p.Graph.AtomBytes(dag.AtomID(a))
			}
		}
		return
	}
	span := &s.Spans[m.index]
	if m.kind != spanEnds {
		r.occupy(span.Task, p.memoryOf(span.Worker))
	}
	if m.kind != spanStarts {
		r.end(span.Task)
	}
}
