package plots

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"dahl/dag"
	"dahl/energy"
	"dahl/must"
	"dahl/platform"
	"dahl/schedule"
)

// listSchedule runs tasks in program order, each on the worker that place picks,
// as early as its predecessors, its worker and its operands allow. An operand
// that was written in another memory moves at 1 GB/s plus 10 us; dispatch takes
// 2 us. It is a stand-in for the simulator, which this package must not import.
func listSchedule(p *schedule.Problem, place func(t dag.TaskID, free []time.Duration) platform.WorkerID, cost func(t dag.TaskID) time.Duration) *schedule.Schedule {
	g := p.Graph
	l := lister{p: p, s: &schedule.Schedule{Steps: p.Steps}, free: make([]time.Duration, len(p.Platform.Workers)),
		end: [2][]time.Duration{make([]time.Duration, len(g.Tasks)), make([]time.Duration, len(g.Tasks))},
		at:  make([]platform.MemoryID, g.NumAtoms())}
	for step := range int32(p.Steps) {
		l.end[0], l.end[1] = l.end[1], l.end[0]
		for t := range dag.TaskID(len(g.Tasks)) {
			l.run(t, step, place(t, l.free), cost(t))
		}
	}
	s := l.s
	slices.SortFunc(s.Spans, func(a, b schedule.Span) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Worker, b.Worker))
	})
	slices.SortFunc(s.Transfers, func(a, b schedule.Transfer) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.To, b.To))
	})
	s.Memory = occupancy(p, s)
	return s
}

type lister struct {
	p    *schedule.Problem
	s    *schedule.Schedule
	free []time.Duration
	end  [2][]time.Duration  // of the tasks of the previous step and of this one
	at   []platform.MemoryID // by atom: where it is valid
}

func (l *lister) run(t dag.TaskID, step int32, w platform.WorkerID, cost time.Duration) {
	g := l.p.Graph
	ready := time.Duration(0)
	for _, k := range g.Preds(t) {
		ready = max(ready, l.end[1][k])
	}
	if step > 0 {
		for _, k := range slices.Concat(g.CarriedPreds(t), g.ReusePreds(t, 1)) {
			ready = max(ready, l.end[0][k])
		}
	}
	memory := l.p.Platform.MemoryOf(w)
	arrival := ready
	for a, access := range g.Tasks[t].Accesses {
		for _, atom := range g.Atoms(t, a) {
			if from := l.at[atom]; access.Mode.Reads() && from != memory {
				bytes := g.AtomBytes(dag.AtomID(atom))
				end := arrival + 10*us + time.Duration(bytes)
				l.s.Transfers = append(l.s.Transfers, schedule.Transfer{Buffer: g.AtomStorage(dag.AtomID(atom)), Atoms: []int32{atom},
					Bytes: bytes, From: from, To: memory, For: t, Step: step, Start: arrival, End: end})
				arrival = end
			}
			l.at[atom] = memory
		}
	}
	start := max(arrival, l.free[w]) + 2*us
	l.end[1][t], l.free[w] = start+cost, start+cost
	l.s.Spans = append(l.s.Spans, schedule.Span{Task: t, Step: step, Worker: w, Ready: arrival, Start: start, End: start + cost})
	l.s.Makespan = max(l.s.Makespan, start+cost)
}

// occupancy lets bytes come with the span that writes them and go with the end of the step.
func occupancy(p *schedule.Problem, s *schedule.Schedule) []schedule.Occupancy {
	live := make([]int64, len(p.Platform.Memories))
	s.PeakBytes = make([]int64, len(live))
	var out []schedule.Occupancy
	for i := range s.Spans {
		span := &s.Spans[i]
		memory := p.Platform.MemoryOf(span.Worker)
		if i%(len(p.Graph.Tasks)) == 0 {
			clear(live)
		}
		for a, access := range p.Graph.Tasks[span.Task].Accesses {
			if access.Mode == dag.Write {
				live[memory] += p.Graph.RegionBytes(span.Task, a)
			}
		}
		out = append(out, schedule.Occupancy{Memory: memory, At: span.Start, Bytes: live[memory]})
		s.PeakBytes[memory] = max(s.PeakBytes[memory], live[memory])
	}
	return out
}

// modelledPower is what the run draws by the platform's powers.
func modelledPower(t testing.TB, p *schedule.Problem, s *schedule.Schedule) []energy.PowerTrace {
	return must.Get(energy.Traces(s, p))(t)
}
