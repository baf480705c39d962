package schedule

import (
	"fmt"
	"slices"
	"time"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule/place"
)

// Interval is when something started and ended.
type Interval struct{ Start, End time.Duration }

// ToOrigin turns a schedule of a placed graph, whose workers are lanes, into one of
// the origin: spans of tasks and of workers, and a transfer for every task of operation copy. p is the
// origin's problem. entered is when each move of Enter was made.
func (s *Schedule) ToOrigin(p *Problem, pg *place.Graph, entered []Interval) (*Schedule, error) {
	out := *s
	out.GraphHash, out.Spans, out.Transfers = p.Graph.Hash(), nil, nil
	var moved []ListItem
	for i, m := range pg.Enter {
		out.Transfers, moved = append(out.Transfers, TransferOf(m, 0, entered[i])), append(moved, ListItem{Enter: int32(i)})
	}
	for _, span := range s.Spans {
		if m := pg.Move(span.Task); m != nil {
			out.Transfers = append(out.Transfers, TransferOf(m, m.StepOf(span.Step, s.Steps), Interval{span.Start, span.End}))
			moved = append(moved, ListItem{Task: dag.Instance{Task: span.Task, Step: span.Step}, Enter: -1})
			continue
		}
		span.Task = pg.TaskOf(span.Task)
		out.Spans = append(out.Spans, span)
	}
	return &out, out.CompletePlaced(p, pg, moved)
}

// CompletePlaced completes a schedule of the origin. Every transfer was made by a task of the placed graph, or by a
// move before the first step: moved says which. Moves of inputs that are anywhere are no transfers of the origin.
func (s *Schedule) CompletePlaced(p *Problem, pg *place.Graph, moved []ListItem) error {
	var when [][]Interval
	if slices.ContainsFunc(p.Platform.Memories, limited) {
		when = s.intervals(pg, moved)
	}
	s.dropAnywhere(pg, moved)
	if err := s.Complete(p); err != nil || when == nil || !pg.Reloads() && s.fits(p.Platform) {
		return err
	}
	s.Evictions = evictions(p, pg, when)
	return s.Complete(p)
}

// CompletePlacedTimes is [Schedule.CompletePlaced] without the contents of memories and their evictions.
func (s *Schedule) CompletePlacedTimes(p *Problem, pg *place.Graph, moved []ListItem) {
	s.dropAnywhere(pg, moved)
	s.completeTimes(p)
}

// dropAnywhere leaves out the moves of inputs that are anywhere.
func (s *Schedule) dropAnywhere(pg *place.Graph, moved []ListItem) {
	kept := s.Transfers[:0]
	for i := range moved {
		if !moved[i].move(pg).Anywhere {
			kept = append(kept, s.Transfers[i])
		}
	}
	s.Transfers = kept
}

func limited(m platform.Memory) bool { return m.CapacityBytes > 0 }

// move is the move of a transfer, or before the first step.
func (i *ListItem) move(pg *place.Graph) *place.Move {
	if i.Enter >= 0 {
		return pg.Enter[i.Enter]
	}
	return pg.Move(i.Task.Task)
}

// intervals are by step and task of the placed graph.
func (s *Schedule) intervals(pg *place.Graph, moved []ListItem) [][]Interval {
	when := make([][]Interval, s.Steps)
	for step := range when {
		when[step] = make([]Interval, pg.NumTasks())
	}
	for _, span := range s.Spans {
		when[span.Step][pg.PlacedAs(span.Task)] = Interval{span.Start, span.End}
	}
	for i := range moved {
		if is := moved[i].Task; moved[i].Enter < 0 {
			when[is.Step][is.Task] = Interval{s.Transfers[i].Start, s.Transfers[i].End}
		}
	}
	return when
}

// fits reports whether no memory holds more than it can, if valid contents stay as long as the storage needs them
// anywhere.
func (s *Schedule) fits(p *platform.Platform) bool {
	for m, peak := range s.PeakBytes {
		if limit := p.Memories[m].CapacityBytes; limit > 0 && peak > limit {
			return false
		}
	}
	return true
}

// TransferOf is the record of a move, made for a step at some time.
func TransferOf(m *place.Move, step int32, when Interval) Transfer {
	return Transfer{Buffer: m.Buffer, Atoms: m.Atoms, Bytes: m.Bytes, From: m.From, To: m.To, For: m.For,
		Step: step, Reason: m.Reason, Start: when.Start, End: when.End, Share: m.Share}
}

// TransferKey identifies a transfer without its times. In two schedules of one plan, transfers of
// one key have the same order.
type TransferKey struct {
	buffer   dag.BufferID
	from, to platform.MemoryID
	reader   dag.Instance
	reason   place.Reason
	atoms    string
	share    place.Share
}

// Key returns the transfer's key.
func (t *Transfer) Key() TransferKey {
	return TransferKey{t.Buffer, t.From, t.To, dag.Instance{Task: t.For, Step: t.Step}, t.Reason, fmt.Sprint(t.Atoms), t.Share}
}
