package schedule

import (
	"cmp"
	"slices"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule/place"
)

// foresight asks for operands of tasks that are not ready yet, where the memory of every task is
// known beforehand, since no task has workers at several. What a task reads then moves as soon as it
// is written: the weights of the next step, what was there before the first step, and results that the
// task needs beside others. Where a policy still chooses, copies of which it does not know would
// change what it expects of the engines.
//
// Such a copy starts after all others that wait, and while no other moves on its way; first those
// whose readers follow the fewest tasks one after the other. It neither
// comes to a memory that may overflow, nor out of one: those have no room for what nobody needs
// yet, and their engines are needed for what has to leave.
type foresight struct {
	readings []reading // by the turn of the readers
	by       dag.Rows  // by writer, and for what is there before the first step: indices of readings
}

// reading is an atom that a task reads in a memory that is known beforehand.
type reading struct {
	writer   int32
	reader   dag.TaskID
	atom     int32
	nextStep bool // what it reads was written in the step before
	memory   platform.MemoryID
}

// newForesight finds all that can be asked for before its reader is ready; nil where some task may
// run at several memories. It tells the queue of copies in which order they come.
func newForesight(p *Problem, r *residency, e *eligibility, q *copyQueue) *foresight {
	at := make([]platform.MemoryID, len(e.workers)) // by class
	for c, workers := range e.workers {
		at[c] = p.Platform.MemoryOf(workers[0])
		if slices.ContainsFunc(workers, func(w platform.WorkerID) bool { return p.Platform.MemoryOf(w) != at[c] }) {
			return nil
		}
	}
	f, turn := &foresight{}, turns(p.Graph, q.order)
	place.EachReading(p.Graph, func(writer int32, reader dag.TaskID, atom int32, nextStep bool) {
		if m := at[e.class[reader]]; r.evictors[m] == nil {
			f.readings = append(f.readings, reading{writer, reader, atom, nextStep, m})
		}
	})
	slices.SortStableFunc(f.readings, func(a, b reading) int { return cmp.Compare(turn[a.reader], turn[b.reader]) })
	edges := make([]dag.Edge, len(f.readings))
	for k := range f.readings {
		edges[k] = dag.Edge{From: dag.TaskID(f.readings[k].writer), To: dag.TaskID(k)}
	}
	f.by = dag.NewRows(len(p.Graph.Tasks)+1, edges)
	q.turn = turn
	return f
}

// turns is the place of every task when they are sorted by how many they follow one after the
// other, and then as in another order.
func turns(g *dag.Graph, order []int32) []int32 {
	depth, sorted := make([]int32, len(g.Tasks)), make([]dag.TaskID, len(g.Tasks))
	for t := range dag.TaskID(len(g.Tasks)) {
		for _, before := range g.Preds(t) {
			depth[t] = max(depth[t], depth[before]+1)
		}
		sorted[order[t]] = t
	}
	slices.SortStableFunc(sorted, func(a, b dag.TaskID) int { return cmp.Compare(depth[a], depth[b]) })
	turn := make([]int32, len(sorted))
	for at, t := range sorted {
		turn[t] = int32(at)
	}
	return turn
}

// foresee asks for what an instance that ended has written. One past the last task stands for what
// was there before the first step.
func (e *Engine) foresee(ended dag.Instance) {
	if e.foresight == nil {
		return
	}
	var of dag.Instance // the batch
	e.copies.batch = e.copies.batch[:0]
	for _, k := range e.foresight.by.Row(int32(ended.Task)) {
		f := &e.foresight.readings[k]
		i := dag.Instance{Task: f.reader, Step: ended.Step}
		if f.nextStep {
			i.Step++
		}
		if e.err != nil || !e.exists(i) || e.steps.IsCut(i.Step) || e.instances[e.steps.Slot(i)].phase != blocked {
			continue // once it is ready, more is known
		}
		valid := e.resident.valid[f.atom]
		if valid == 0 || valid&(1<<f.memory) != 0 {
			continue
		}
		from := e.resident.source(f.atom, f.memory, e.resident.bytes(f.atom))
		if e.resident.evictors[from] != nil {
			continue
		}
		if i != of {
			of, e.copies.batch = i, e.copies.batch[:0]
		}
		e.err = e.copies.ask(i, f.atom, from, f.memory, foreseeing)
	}
}
