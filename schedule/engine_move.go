package schedule

import (
	"dahl/dag"
	"dahl/platform"
)

// The side of the Engine that moves operands, where there are several memories.

// prepareCopies sets up what moves data.
func (e *Engine) prepareCopies() {
	e.resident.shared = newSharing(e.p)
	e.resident.makeEvictors()
	e.copies = newCopies(e.p, e.resident, e.steps.keyOf)
	e.workersAt = make([][]platform.WorkerID, len(e.p.Platform.Memories))
	for w := range e.workers {
		m := e.p.memoryOf(platform.WorkerID(w))
		e.workersAt[m] = append(e.workersAt[m], platform.WorkerID(w))
		e.workers[w].ahead = m != e.p.Platform.HostMemory()
	}
}

// Copied reports that a copy arrived.
func (e *Engine) Copied(c CopyID, cmds []Command) []Command {
	e.at = e.now()
	e.copies.arrive(c, e.at)
	for m := range e.workersAt {
		cmds = e.runFetched(platform.MemoryID(m), cmds)
	}
	return e.move(cmds)
}

// CopyAt describes a copy that was commanded and has not arrived. Start and End
// are the caller's to fill in, on a copy of it; Atoms are valid until it arrives.
func (e *Engine) CopyAt(c CopyID) *Transfer { return &e.copies.inFlight[c].Transfer }

// EvictionAt describes an eviction that was commanded. At is the caller's to fill in, on
// a copy of it.
func (e *Engine) EvictionAt(n int32) *Eviction { return &e.evictions[n] }

// admit gives the task of a worker to the worker's memory: at once where there is room
// for everything, else in its turn.
func (e *Engine) admit(w platform.WorkerID, cmds []Command) []Command {
	state, m := &e.workers[w], e.p.memoryOf(w)
	if evictor := e.resident.evictors[m]; evictor != nil {
		state.phase = unadmitted
		evictor.waiting = append(evictor.waiting, w)
		return cmds
	}
	if e.err = e.copies.fetch(state.takes, m, ReasonFetch); e.err != nil || !e.mayRun(state, m) {
		return cmds
	}
	return e.run(w, cmds)
}

// mayRun reports whether all operands of the task that a worker has taken are in its
// memory, and room for what it writes. Behind another it may not be commanded if it
// overwrites what other memories have: whether there is room in them goes by what they
// have when it starts, which is not now.
func (e *Engine) mayRun(w *workerState, m platform.MemoryID) bool {
	evictor, t := e.resident.evictors[m], w.takes.Task
	return e.resident.holds(t, m) && e.resident.shared.mayWrite(t, m) && (evictor == nil || evictor.fits(t)) &&
		!(w.busy && e.resident.overwritesElsewhere(t, m))
}

// Holds reports whether the contents of an atom are valid in a memory.
func (e *Engine) Holds(m platform.MemoryID, a dag.AtomID) bool {
	return e.resident == nil || e.resident.valid[a]&(1<<m) != 0
}

// release frees what nothing uses after a task.
func (e *Engine) release(t dag.TaskID, w platform.WorkerID) {
	e.resident.end(t)
	if evictor := e.resident.evictors[e.p.memoryOf(w)]; evictor != nil {
		evictor.release(t)
		evictor.name(t, -1)
	}
}

// move is the end of every event: it admits tasks, makes room for them, runs those for
// which there is room, and starts the copies that can start.
func (e *Engine) move(cmds []Command) []Command {
	if e.copies == nil {
		return cmds
	}
	e.evictions = e.evictions[:0]
	for before := -1; before != e.ready; { // who runs a task now may take another
		before = e.ready
		for m, evictor := range e.resident.evictors {
			if evictor != nil && e.err == nil {
				cmds = e.runFetched(platform.MemoryID(m), e.makeRoom(evictor, cmds))
			}
		}
		cmds = e.offer(e.ahead, cmds)
	}
	for e.err == nil {
		id, ok, err := e.copies.next(e.at)
		if e.err = err; !ok {
			break
		}
		f := e.copies.inFlight[id]
		cmds = append(cmds, Command{Kind: CopyRegion, Instance: Instance{f.For, f.Step}, Copy: id})
	}
	return cmds
}

// expect notes when a worker should have done an instance that it is given, and asks for
// the operands, early: who is given something next sees their copies wait, as urgent ones
// where the worker takes the instance in this event. Where a memory has no room for them
// now, by when they come is too much of a guess to build on.
func (e *Engine) expect(w platform.WorkerID, i Instance) {
	s, m, at := &e.workers[w], e.p.memoryOf(w), e.freeAt(w)
	if a := e.arrival(i, m); a.Soon != Never {
		at = e.view.StartsAt(w, a)
	}
	s.ends = at + e.p.occupies(i.Task, w)
	e.err = e.copies.fetch(i, m, ReasonPrefetch)
	if s.queued == 0 && s.phase == resting && (!s.busy || s.ahead) {
		e.copies.await()
	}
}

// makeRoom admits the tasks that fit, in their turn, and evicts what is in their way.
func (e *Engine) makeRoom(evictor *evictor, cmds []Command) []Command {
	for len(evictor.waiting) > 0 && e.err == nil {
		state := &e.workers[evictor.waiting[0]]
		if !evictor.admit(state.takes) {
			break
		}
		evictor.waiting = evictor.waiting[1:]
		state.phase = fetching
		e.err = e.copies.fetch(state.takes, evictor.memory, ReasonFetch)
	}
	e.copies.batch = e.copies.batch[:0]
	home := e.p.Platform.HostMemory()
	err := evictor.makeRoom(func(atom int32) error {
		return e.copies.ask(evictor.last, atom, evictor.memory, home, ReasonEvict)
	})
	if e.err == nil {
		e.err = err
	}
	first := len(e.evictions)
	e.evictions = evictor.flush(e.evictions)
	for n := first; n < len(e.evictions); n++ {
		cmds = append(cmds, Command{Kind: EvictRegion, Instance: evictor.last, Eviction: int32(n)})
	}
	return cmds
}

// runFetched runs the tasks of a memory's workers that have all their operands, and room
// for what they write.
func (e *Engine) runFetched(m platform.MemoryID, cmds []Command) []Command {
	for _, w := range e.workersAt[m] {
		if state := &e.workers[w]; state.phase == fetching && e.err == nil && e.mayRun(state, m) {
			cmds = e.run(w, cmds)
		}
	}
	return cmds
}

func (e *Engine) missingBytes(i Instance, m platform.MemoryID) int64 {
	if e.copies == nil {
		return 0
	}
	var bytes int64
	e.resident.missing(i.Task, m, func(atom int32, _ int64) { bytes += e.resident.bytes(atom) })
	return bytes
}

// name notes that the operands of a task that is given to a worker are needed in its
// memory, and no longer in that of the worker before, if there is one.
func (e *Engine) name(t dag.TaskID, before, w platform.WorkerID) {
	if evictor := e.resident.evictors[e.p.memoryOf(w)]; evictor != nil {
		evictor.name(t, 1)
	}
	if before == Undecided {
		return
	}
	if evictor := e.resident.evictors[e.p.memoryOf(before)]; evictor != nil {
		evictor.name(t, -1)
	}
}
