package schedule

import (
	"dahl/dag"
	"dahl/platform"
)

// This file is the part of the Engine that moves operands between several memories.

// prepareCopies sets up the copies and the eviction of several memories.
func (e *Engine) prepareCopies() {
	e.resident.shared = newSharing(e.p)
	e.resident.makeEvictors()
	_, order := e.steps.Order()
	e.copies = newCopies(e.p, e.resident, order)
	e.foresight = newForesight(e.p, e.resident, e.eligible, e.copies.queue)
	e.workersAt = make([][]platform.WorkerID, len(e.p.Platform.Memories))
	for w := range e.workers {
		m := e.p.Platform.MemoryOf(platform.WorkerID(w))
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

// CopyAt describes a copy that was commanded and has not arrived. The caller copies the struct
// before it fills in Start and End. Atoms are valid until the copy arrives.
func (e *Engine) CopyAt(c CopyID) *Transfer { return &e.copies.inFlight[c].Transfer }

// EvictionAt describes an eviction that was commanded. The caller copies the struct before it
// fills in At.
func (e *Engine) EvictionAt(n int32) *Eviction { return &e.evictions[n] }

// admit asks the worker's memory for room for the task that the worker has taken. A memory that
// can hold everything admits it at once; elsewhere it waits for its turn.
func (e *Engine) admit(w platform.WorkerID, cmds []Command) []Command {
	state, m := &e.workers[w], e.p.Platform.MemoryOf(w)
	if evictor := e.resident.evictors[m]; evictor != nil {
		state.phase = unadmitted
		evictor.waiting = append(evictor.waiting, w)
		return cmds
	}
	if e.err = e.copies.fetch(state.takes, m, taking); e.err != nil || !e.mayRun(state, m) {
		return cmds
	}
	return e.run(w, cmds)
}

// mayRun reports whether the memory of a worker has all operands of the task that the worker has
// taken, and room for its results. A task behind another one is not commanded yet if it
// overwrites contents of other memories: their room depends on what they hold when the task
// starts.
func (e *Engine) mayRun(w *workerState, m platform.MemoryID) bool {
	evictor, t := e.resident.evictors[m], w.takes.Task
	return e.resident.holds(t, m) && e.resident.shared.mayWrite(t, m) && (evictor == nil || evictor.fits(t)) &&
		!(w.busy && e.resident.overwritesElsewhere(t, m))
}

// Holds reports whether the contents of an atom are valid in a memory.
func (e *Engine) Holds(m platform.MemoryID, a dag.AtomID) bool {
	return e.resident == nil || e.resident.valid[a]&(1<<m) != 0
}

// release ends a task's hold on its memory and frees contents that nobody uses any more.
func (e *Engine) release(i dag.Instance, w platform.WorkerID) {
	e.resident.end(i)
	if evictor := e.resident.evictors[e.p.Platform.MemoryOf(w)]; evictor != nil {
		evictor.release(i.Task)
		evictor.name(i.Task, -1)
	}
}

// move ends every event. It admits tasks, makes room for them, runs those that have room, and
// starts the copies that can start.
func (e *Engine) move(cmds []Command) []Command {
	if e.copies == nil {
		return cmds
	}
	e.evictions = e.evictions[:0]
	for before := -1; before != e.ready; { // a worker that runs a task now may take another
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
		cmds = append(cmds, Command{Kind: CopyRegion, Instance: dag.Instance{Task: f.For, Step: f.Step}, Copy: id})
	}
	return cmds
}

// expect notes when a worker should have done an instance that it is given. It requests the
// operands now as prefetches, so that the estimate for the next assignment sees those copies in
// the queue. If the worker starts this task in the same event, they are queued as urgent. Where
// the memory has no room for the operands now, the time at which they come is too uncertain to
// count.
func (e *Engine) expect(w platform.WorkerID, i dag.Instance) {
	s, m, at := &e.workers[w], e.p.Platform.MemoryOf(w), e.freeAt(w)
	if a := e.arrival(i, m); a.Soon != Never {
		at = e.view.StartsAt(w, a)
	}
	s.ends = at + e.p.occupies(i.Task, w)
	e.err = e.copies.fetch(i, m, expecting)
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
		e.err = e.copies.fetch(state.takes, evictor.memory, taking)
	}
	e.copies.batch = e.copies.batch[:0]
	home := e.p.Platform.HostMemory()
	err := evictor.makeRoom(func(atom int32) error {
		return e.copies.ask(evictor.last, atom, evictor.memory, home, evicting)
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

// runFetched runs the tasks of a memory's workers that have all their operands and room for their
// results.
func (e *Engine) runFetched(m platform.MemoryID, cmds []Command) []Command {
	for _, w := range e.workersAt[m] {
		if state := &e.workers[w]; state.phase == fetching && e.err == nil && e.mayRun(state, m) {
			cmds = e.run(w, cmds)
		}
	}
	return cmds
}

func (e *Engine) missingBytes(i dag.Instance, m platform.MemoryID) int64 {
	if e.copies == nil {
		return 0
	}
	var bytes int64
	e.resident.missing(i.Task, m, func(atom int32, _ int64) { bytes += e.resident.bytes(atom) })
	return bytes
}

// name notes that the worker's memory needs the operands of a task. If the task was given to
// another worker before, the memory of that worker needs them no longer.
func (e *Engine) name(t dag.TaskID, before, w platform.WorkerID) {
	if evictor := e.resident.evictors[e.p.Platform.MemoryOf(w)]; evictor != nil {
		evictor.name(t, 1)
	}
	if before == Undecided {
		return
	}
	if evictor := e.resident.evictors[e.p.Platform.MemoryOf(before)]; evictor != nil {
		evictor.name(t, -1)
	}
}
