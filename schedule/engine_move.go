package schedule

import (
	"time"

	"dahl/dag"
	"dahl/platform"
)

// The side of the Engine that moves operands, where there are several memories.

// prepareCopies sets up what moves data.
func (e *Engine) prepareCopies(policy Policy) {
	e.resident.shared = newSharing(e.p)
	e.resident.makeRooms()
	var position []int32
	if known, ok := policy.(placer); ok {
		e.placed, position = known.placement()
		e.pushes = newPushes(e.p.Graph, position)
	}
	e.copies = newCopies(e.p, e.resident, copyOrder(e.p.Graph, position, e.steps.keyOf))
	e.workersAt = make([][]platform.WorkerID, len(e.p.Platform.Memories))
	for w := range e.workers {
		m := e.p.memoryOf(platform.WorkerID(w))
		e.workersAt[m] = append(e.workersAt[m], platform.WorkerID(w))
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

// push asks for what an instance wrote in the memories where the plan will read it.
func (e *Engine) push(i Instance) {
	for _, to := range e.pushes.byWriter[i.Task] {
		reader := Instance{Task: to.reader, Step: i.Step}
		if to.nextStep {
			reader.Step++
		}
		if int(reader.Step) >= e.p.Steps || e.err != nil {
			break
		}
		e.err = e.copies.push(reader, to.atoms, e.p.memoryOf(e.placed[to.reader]))
	}
}

// enter gives the task of a worker to the worker's memory: at once where there is room
// for everything, else in its turn.
func (e *Engine) enter(w platform.WorkerID, cmds []Command) []Command {
	state, m := &e.workers[w], e.p.memoryOf(w)
	if room := e.resident.rooms[m]; room != nil {
		state.phase = entering
		room.waiting = append(room.waiting, w)
		return cmds
	}
	if e.err = e.copies.fetch(state.holds, m, ReasonFetch); e.err != nil || !e.mayRun(state.holds.Task, m) {
		return cmds
	}
	return e.run(w, cmds)
}

// mayRun reports whether all operands of a task are in its memory, and room for what it
// writes.
func (e *Engine) mayRun(t dag.TaskID, m platform.MemoryID) bool {
	room := e.resident.rooms[m]
	return e.resident.holds(t, m) && e.resident.shared.mayWrite(t, m) && (room == nil || room.fits(t))
}

// Holds reports whether the contents of an atom are valid in a memory.
func (e *Engine) Holds(m platform.MemoryID, a dag.AtomID) bool {
	return e.resident == nil || e.resident.valid[a]&(1<<m) != 0
}

// leave frees what nothing uses after a task.
func (e *Engine) leave(t dag.TaskID, w platform.WorkerID) {
	e.resident.end(t)
	if room := e.resident.rooms[e.p.memoryOf(w)]; room != nil {
		room.release(t)
	}
}

// move is the end of every event: it asks for the operands of what was assigned and not
// taken, admits tasks, makes room for them, runs those for which there is room, and
// starts the copies that can start.
func (e *Engine) move(cmds []Command) []Command {
	if e.copies == nil {
		return cmds
	}
	e.prefetch()
	e.evictions = e.evictions[:0]
	for m, room := range e.resident.rooms {
		if room != nil && e.err == nil {
			cmds = e.runFetched(platform.MemoryID(m), e.makeRoom(room, cmds))
		}
	}
	for e.err == nil {
		id, ok, err := e.copies.next()
		if e.err = err; !ok {
			break
		}
		f := e.copies.inFlight[id]
		cmds = append(cmds, Command{Kind: CopyRegion, Instance: Instance{f.For, f.Step}, Copy: id})
	}
	return cmds
}

// prefetch asks for the operands of what became ready, has a worker and was not taken.
func (e *Engine) prefetch() {
	for _, i := range e.released {
		if x := &e.instances[e.steps.slot(i)]; x.phase == ready && x.worker != Undecided && e.err == nil {
			e.err = e.copies.fetch(i, e.p.memoryOf(x.worker), ReasonPrefetch)
		}
	}
	e.released = e.released[:0]
}

// makeRoom admits the tasks that fit, in their turn, and evicts what is in their way.
func (e *Engine) makeRoom(room *room, cmds []Command) []Command {
	for len(room.waiting) > 0 && e.err == nil {
		state := &e.workers[room.waiting[0]]
		if !room.admit(state.holds) {
			break
		}
		room.waiting = room.waiting[1:]
		state.phase = fetching
		e.err = e.copies.fetch(state.holds, room.memory, ReasonFetch)
	}
	e.copies.batch = e.copies.batch[:0]
	home := e.p.Platform.HostMemory()
	err := room.makeRoom(func(atom int32) error {
		return e.copies.ask(room.last, atom, room.memory, home, ReasonEvict)
	})
	if e.err == nil {
		e.err = err
	}
	first := len(e.evictions)
	e.evictions = room.flush(e.evictions)
	for n := first; n < len(e.evictions); n++ {
		cmds = append(cmds, Command{Kind: EvictRegion, Instance: room.last, Eviction: int32(n)})
	}
	return cmds
}

// runFetched runs the tasks of a memory's workers that have all their operands, and room
// for what they write.
func (e *Engine) runFetched(m platform.MemoryID, cmds []Command) []Command {
	for _, w := range e.workersAt[m] {
		if state := &e.workers[w]; state.phase == fetching && e.err == nil && e.mayRun(state.holds.Task, m) {
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

func (e *Engine) transferTime(i Instance, m platform.MemoryID) time.Duration {
	if e.copies == nil {
		return 0
	}
	return e.copies.transferTime(i.Task, m)
}
